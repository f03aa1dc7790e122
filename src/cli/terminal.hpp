#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace ddprof {

// Names of files, functions and processes are foreign text. Whatever is printed goes through these two, which
// leave lines and colours as they are and make the rest printable.

// Writes to standard output, all of it; the exit status to end with.
int print_output(const std::string& text);
// Writes to standard error. `before` is written as it is: see fresh_line().
void say_text(std::string_view text, std::string_view before = "");

// Columns of standard output, or of another descriptor; where that is no terminal, $COLUMNS, else 100.
[[nodiscard]] std::size_t terminal_width(int fd = STDOUT_FILENO);

// Columns for running text: of the terminal, else COLUMNS, else 80; from 60 to 200.
[[nodiscard]] std::size_t text_width();

// Whether progress can be drawn on standard error: it is a terminal, and what is profiled does not write
// there. A program that we start has the same streams, and no way to tell when it is quiet or on an alternate
// screen. `attached` is 0 for the whole host.
[[nodiscard]] bool may_draw_progress(bool starts_program, Pid attached);

// Written to standard error before a text, this puts it on a line of its own, wherever the program has left
// the cursor. Empty where that is no terminal.
[[nodiscard]] std::string fresh_line();

// See no-color.org.
[[nodiscard]] bool wants_color(int fd = STDOUT_FILENO);

// Writes to standard output; on a terminal that is too short for it, through $PAGER (less, where there is
// one). The exit status to end with.
int page_output(const std::string& text);

}  // namespace ddprof
