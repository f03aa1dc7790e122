#include "encode/json_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "encode/utf8.hpp"

namespace ddprof {

namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      out += letter;
    }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  if (is_utf8(text)) {
    append_escaped(out, text);
  } else {
    append_escaped(out, to_utf8(text));
  }
  out += '"';
}

}  // namespace ddprof
