// Arbitrary text as the address of a statsd server: what is accepted can be written and read again, and
// shown.
#include <cstdint>
#include <cstdlib>

#include "export/addresses.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto address = StatsdAddress::parse({reinterpret_cast<const char*>(data), size});
  if (!address) {
    for (const char each : address.error().message) {
      if (each < ' ' || each > '~') std::abort();
    }
    return 0;
  }
  const auto again = StatsdAddress::parse(address->text());
  if (!again || again->text() != address->text()) std::abort();
  return 0;
}
