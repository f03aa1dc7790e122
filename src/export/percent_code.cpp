#include "export/percent_code.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ddprof {

namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    if (is_unreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || digits.size() != 2 || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(value);
    at += 2;
  }
  return decoded;
}

}  // namespace ddprof
