#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// Appends `text` as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends a range as a JSON array; `write(out, element)` writes one of its elements.
template <typename Range, typename Write>
void append_json_array(std::string& out, const Range& range, Write&& write) {
  out += '[';
  bool is_first = true;
  for (const auto& element : range) {
    if (!is_first) out += ',';
    is_first = false;
    write(out, element);
  }
  out += ']';
}

}  // namespace ddprof
