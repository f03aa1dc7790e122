#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "encode/pprof.hpp"
#include "import/foreign_formats.hpp"

// Whatever is read is a profile whose every index is good: it can be written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const DecodeLimits limits{.inflated_bytes = 1 << 20, .memory_bytes = 16 << 20};
  const Result<Profile> profile = decode_firefox({reinterpret_cast<const char*>(data), size}, limits);
  if (!profile.ok()) return 0;
  const std::string bytes = encode_pprof(*profile);
  if (!decode_pprof(std::as_bytes(std::span(bytes))).ok()) std::abort();
  return 0;
}
