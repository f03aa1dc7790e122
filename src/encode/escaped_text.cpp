#include "encode/escaped_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "encode/display_text.hpp"

namespace ddprof {

namespace {

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

// The least second byte that is not an overlong form, and the greatest that is no surrogate and below
// U+110000.
bool is_second_byte(unsigned first, unsigned second) {
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length || !is_second_byte(first, byte_at(text, 1))) return 0;
  for (std::size_t at = 2; at < length; ++at) {
    if (byte_at(text, at) >> 6 != 2) return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) {
      clean += "\xef\xbf\xbd";
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return clean;
}

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

namespace {

constexpr std::size_t kLongestText = 8'192;

std::string_view xml_entity(char letter) {
  switch (letter) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string cut;
  if (text.size() > kLongestText) {
    cut = fmt::format("{}…{}", text.substr(0, kLongestText / 2), text.substr(text.size() - kLongestText / 2));
    text = cut;
  }
  std::string clean = printable(text);
  for (const std::string_view code : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {  // U+FFFE, U+FFFF
    for (std::size_t at = clean.find(code); at != std::string::npos; at = clean.find(code, at))
      clean.replace(at, code.size(), "\xef\xbf\xbd");
  }
  return clean;
}

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (const std::string_view entity = xml_entity(letter); !entity.empty()) {
      escaped += entity;
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

void append_script_string(std::string& out, std::string_view text) {
  std::string json;
  append_json_string(json, text);
  for (const char letter : json) {
    if (letter == '<' || letter == '>' || letter == '&') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      out += letter;
    }
  }
}

}  // namespace ddprof
