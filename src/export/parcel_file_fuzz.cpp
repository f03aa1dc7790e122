// Arbitrary bytes as a file of the spool: what is accepted can be written and read again.
#include <cstdint>
#include <cstdlib>

#include "export/parcel_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto parcel = read_parcel(std::as_bytes(std::span(data, size)));
  if (!parcel) return 0;
  const std::string file = write_parcel(*parcel);
  const auto again = read_parcel(std::as_bytes(std::span(file)));
  if (!again || again->body != parcel->body || again->headers.size() != parcel->headers.size()) std::abort();
  return 0;
}
