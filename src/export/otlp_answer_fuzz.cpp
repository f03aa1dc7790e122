// Arbitrary bytes as the answer of a collector: what is made of them is text that is not much longer.
#include <cstdint>
#include <cstdlib>

#include "encode/escaped_text.hpp"
#include "export/otlp_peer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string objection = ddprof::otlp_objection({reinterpret_cast<const char*>(data), size});
  if (objection.size() > 3 * size + 100 || !ddprof::is_utf8(objection)) std::abort();
  if (size == 0 && !objection.empty()) std::abort();
  return 0;
}
