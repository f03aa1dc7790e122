#include "encode/zstd.hpp"

#include <zstd.h>

namespace ddprof {

Result<std::string> zstd(std::string_view bytes, int level) {
  std::string out;
  out.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size) != 0) return make_error(ErrorCode::failed, "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace ddprof
