#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "encode/pprof.hpp"
#include "encode/viewer_formats.hpp"

// Whatever decodes must encode, decode again to the same bytes, and be safe to read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const DecodeLimits limits{.inflated_bytes = 1 << 20, .memory_bytes = 16 << 20};
  const Result<Profile> profile = decode_pprof(std::as_bytes(std::span(data, size)), limits);
  if (!profile.ok()) return 0;
  (void)encode_folded(*profile);
  const std::string bytes = encode_pprof(*profile);
  const Result<Profile> again = decode_pprof(std::as_bytes(std::span(bytes)));
  if (!again.ok() || encode_pprof(*again) != bytes) std::abort();
  return 0;
}
