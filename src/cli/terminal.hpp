#pragma once

#include <cstddef>
#include <string>

namespace ddprof {

// Writes to standard output, all of it; the exit status to end with.
int print_output(const std::string& text);

// Columns of standard output; 100 where that is no terminal.
[[nodiscard]] std::size_t terminal_width();

// Columns for running text: of the terminal, else COLUMNS, else 80; from 60 to 200.
[[nodiscard]] std::size_t text_width();

// See no-color.org.
[[nodiscard]] bool wants_color();

}  // namespace ddprof
