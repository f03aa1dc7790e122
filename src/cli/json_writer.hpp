#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprof {

// Writes JSON, one member or element a line. Keys and commas are its business; that what is opened gets
// closed is the caller's.
class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  // Inside of an object, in front of each value.
  void key(std::string_view name);

  // What is no UTF-8 becomes U+FFFD.
  void text(std::string_view value);
  void number(std::int64_t value);
  void flag(bool value);

  void member(std::string_view name, std::string_view value) { key(name), text(value); }
  void member(std::string_view name, std::int64_t value) { key(name), number(value); }

  std::string finish() && { return std::move(text_) + "\n"; }

 private:
  void open(char bracket);
  void close(char bracket);
  void begin_value();
  void new_line();

  std::string text_;
  std::size_t depth_ = 0;
  bool is_first_ = true;  // nothing yet in the innermost object or array
  bool is_after_key_ = false;
};

}  // namespace ddprof
