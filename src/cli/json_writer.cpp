#include "cli/json_writer.hpp"

#include <utility>

#include "encode/escaped_text.hpp"

namespace ddprof {

void JsonWriter::new_line() { text_ += "\n" + std::string(2 * depth_, ' '); }

void JsonWriter::begin_value() {
  if (std::exchange(is_after_key_, false)) return;
  if (!std::exchange(is_first_, false)) text_ += ',';
  if (depth_ > 0) new_line();
}

void JsonWriter::open(char bracket) {
  begin_value();
  text_ += bracket;
  ++depth_;
  is_first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!std::exchange(is_first_, false)) new_line();
  text_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  begin_value();
  append_json_string(text_, name);
  text_ += ": ";
  is_after_key_ = true;
}

void JsonWriter::text(std::string_view value) {
  begin_value();
  append_json_string(text_, value);
}

void JsonWriter::number(std::int64_t value) {
  begin_value();
  text_ += std::to_string(value);
}

void JsonWriter::flag(bool value) {
  begin_value();
  text_ += value ? "true" : "false";
}

}  // namespace ddprof
