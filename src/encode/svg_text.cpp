#include "encode/svg_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "encode/display_text.hpp"
#include "encode/json_text.hpp"

namespace ddprof {

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
