#pragma once

#include "symbol/dwarf/debug_info.hpp"

namespace ddprof {

// The file that dwz moved the common parts of several files to: .gnu_debugaltlink, or .debug_sup of DWARF 5.
// Null when this file names none, or it is not to be found.
[[nodiscard]] const ElfFile* find_supplementary(const ElfFile& file, DebugFileSource& others);

}  // namespace ddprof
