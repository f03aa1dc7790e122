// Arbitrary bytes as a file of the spool: what is accepted can be written and read again.
#include <cstdint>
#include <cstdlib>

#include "export/spool.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto request = read_request(std::as_bytes(std::span(data, size)));
  if (!request) return 0;
  const std::string file = write_request(*request);
  const auto again = read_request(std::as_bytes(std::span(file)));
  if (!again || again->body != request->body || again->headers.size() != request->headers.size())
    std::abort();
  return 0;
}
