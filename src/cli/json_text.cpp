#include "cli/json_text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "encode/utf8.hpp"

namespace ddprof {

namespace {

void append_quoted(std::string& out, std::string_view value) {
  out += '"';
  for (const char letter : to_utf8(value)) {
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      out += letter;
    }
  }
  out += '"';
}

}  // namespace

void JsonText::new_line() { text_ += "\n" + std::string(2 * depth_, ' '); }

void JsonText::begin_value() {
  if (std::exchange(is_after_key_, false)) return;
  if (!std::exchange(is_first_, false)) text_ += ',';
  if (depth_ > 0) new_line();
}

void JsonText::open(char bracket) {
  begin_value();
  text_ += bracket;
  ++depth_;
  is_first_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!std::exchange(is_first_, false)) new_line();
  text_ += bracket;
}

void JsonText::key(std::string_view name) {
  begin_value();
  append_quoted(text_, name);
  text_ += ": ";
  is_after_key_ = true;
}

void JsonText::text(std::string_view value) {
  begin_value();
  append_quoted(text_, value);
}

void JsonText::number(std::int64_t value) {
  begin_value();
  text_ += std::to_string(value);
}

void JsonText::flag(bool value) {
  begin_value();
  text_ += value ? "true" : "false";
}

}  // namespace ddprof
