#include "encode/zstd.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/turns.hpp"

namespace ddprof {

Result<std::string> zstd(std::string_view bytes, int level) {
  constexpr std::size_t kChunk = std::size_t{128} << 10U;
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) return make_error(ErrorCode::exhausted, "zstd: out of memory");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), bytes.size());
  std::string out;
  out.resize(ZSTD_compressBound(bytes.size()));
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  for (std::size_t left = 1; left != 0;) {
    ZSTD_inBuffer input{bytes.data(), std::min(bytes.size(), kChunk), 0};
    const bool is_last = input.size == bytes.size();
    left = ZSTD_compressStream2(context.get(), &output, &input, is_last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) return make_error(ErrorCode::failed, "zstd: {}", ZSTD_getErrorName(left));
    bytes.remove_prefix(input.pos);
    if (!is_last) left = 1;
    rest_point();
  }
  out.resize(output.pos);
  return out;
}

}  // namespace ddprof
