#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = ddprof::parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!entries.ok()) {
    if (!entries.error().message.starts_with("f:")) std::abort();
    return 0;
  }
  for (const ddprof::ConfigEntry& entry : *entries) {
    if (entry.key.empty() || entry.line == 0) std::abort();
  }
  return 0;
}
