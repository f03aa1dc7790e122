#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// The name of a file made from a string that a stranger chose: the name of a process, an address. ASCII
// letters, digits, dots and dashes stay; each run of other bytes becomes one underscore, and so does a dot or
// a dash in front. At most 60 bytes, never empty: no path, no hidden file, no option of a command, nothing
// that a shell, a terminal or JSON would have to quote.
[[nodiscard]] std::string safe_file_name(std::string_view text);

}  // namespace ddprof
