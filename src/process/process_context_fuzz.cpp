#include <cstdint>
#include <span>

#include "process/process_context.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ddprof::parse_process_context_head(bytes);
  (void)ddprof::parse_process_context(text);
  (void)ddprof::find_process_context(text);
  return 0;
}
