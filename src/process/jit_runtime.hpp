#pragma once

#include <cstdint>
#include <string_view>

namespace ddprof {

// Whose compiler writes the code that a process generates, as far as what helps differs.
enum class JitRuntime : std::uint8_t { unknown, java, node };

// By the name of a file that the process maps, without folders.
[[nodiscard]] constexpr JitRuntime runtime_of_file(std::string_view name) {
  if (name == "libjvm.so") return JitRuntime::java;
  if (name == "node" || name == "nodejs" || name.starts_with("libnode.so")) return JitRuntime::node;
  return JitRuntime::unknown;
}

}  // namespace ddprof
