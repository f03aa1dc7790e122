#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "process/thread_context.hpp"

// Whatever a thread publishes: texts stay inside of the record, and every key is there once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto context = ddprof::parse_thread_context(bytes);
  if (!context) return 0;
  if (context->attributes.size() > 256) std::abort();
  const auto* begin = reinterpret_cast<const char*>(data);
  for (const auto& attribute : context->attributes) {
    if (attribute.text.data() < begin || attribute.text.data() + attribute.text.size() > begin + size)
      std::abort();
  }
  return 0;
}
