#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprof {

// Text in columns of a terminal.

// Names come from files of unknown origin: control characters, which a terminal would obey, and
// bytes that are no UTF-8 become U+FFFD.
std::string printable(std::string_view text);

// The same for a text of several lines: ends of lines, tabs and colours (ESC [ … m) stay.
std::string printable_lines(std::string_view text);

// Columns that printable text takes: two for East Asian wide characters, none for combining marks.
std::size_t display_width(std::string_view text);

// The text made printable, its middle cut out when it is too wide: both ends of a name tell the most.
std::string fit(std::string_view text, std::size_t width);

// The text made printable, its end cut off when it is too wide: code is read from the left.
std::string fit_left(std::string_view text, std::size_t width);

// The name of a function: gives up the innermost template arguments first, then the call's arguments, then
// its middle.
std::string fit_name(std::string_view name, std::size_t width);

// The same for narrower places: before its middle, the name gives up its brackets and return type altogether,
// then its scopes. What is left is the function's own name.
std::string fit_short_name(std::string_view name, std::size_t width);

// Printable text in lines of `columns`, broken at spaces. The first begins at column `indent`, and the others
// are indented so far.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);

// Pads with spaces up to `width`.
std::string left_aligned(std::string_view text, std::size_t width);
std::string right_aligned(std::string_view text, std::size_t width);

}  // namespace ddprof
