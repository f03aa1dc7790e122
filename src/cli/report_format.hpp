#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprof {

// "1.52 s", "310 ms", "4.1 MiB", "12,345": three digits are enough for a person.
std::string human_value(std::int64_t value, std::string_view unit);

// "12,345"
std::string human_count(std::int64_t count);

// "12.3 %"
std::string human_percent(std::int64_t part, std::int64_t whole);

// Columns on a terminal, one per character.
std::size_t display_width(std::string_view text);

// Cuts the middle out of what is too wide: both ends of a C++ name tell more than its template arguments.
std::string fit(std::string_view text, std::size_t width);

// Pads with spaces up to `width`.
std::string left_aligned(std::string_view text, std::size_t width);
std::string right_aligned(std::string_view text, std::size_t width);

// "2023-11-14 22:13:20 UTC"
std::string human_time(std::int64_t unix_ns);

// "1 thread", "2 threads"
std::string plural(std::size_t count, std::string_view noun, std::string_view nouns);

}  // namespace ddprof
