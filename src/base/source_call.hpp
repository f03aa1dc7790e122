#pragma once

#include <cstdint>
#include <string_view>

namespace ddprof {

// One call at an address, as debug information tells it. An address in inlined code has several of them: the
// innermost first, the function that the linker knows last. Who hands them out says how long the texts live.
struct SourceCall {
  std::string_view linker_name;  // mangled; empty when the language has no such names
  std::string_view name;   // as written in the source; without a linker name, with namespaces and classes
  std::string_view file;   // as the compiler recorded it, made absolute by its working directory
  std::uint32_t line = 0;  // of the code, or of the inlined call below it; 0: unknown
  std::uint32_t column = 0;
  std::uint32_t start_line = 0;  // where the function is declared; 0: unknown
};

}  // namespace ddprof
