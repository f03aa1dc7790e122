#include "net/http_text.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <charconv>

namespace ddprof {

namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

// The character that "%2c" at the beginning of a text means; none where it is no escape.
std::optional<char> escaped_character(std::string_view text) {
  unsigned value = 0;
  const std::string_view digits = text.substr(1, 2);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc{} || digits.size() != 2 || end != digits.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

std::string decoded(std::string_view text, bool& is_right) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::optional<char> escaped = text[at] == '%' ? escaped_character(text.substr(at)) : std::nullopt;
    is_right &= escaped || text[at] != '%';
    plain += escaped.value_or(text[at]);
    if (escaped) at += 2;
  }
  return plain;
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (char c : text)
    encoded += is_unreserved(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  bool is_right = true;
  std::string plain = decoded(text, is_right);
  return is_right ? std::optional(plain) : std::nullopt;
}

std::string percent_decoded_leniently(std::string_view text) {
  bool is_right = true;
  return decoded(text, is_right);
}

std::string basic_auth(std::string_view user, std::string_view password) {
  const std::string pair = fmt::format("{}:{}", user, password);
  std::string coded(4 * ((pair.size() + 2) / 3) + 1, '\0');  // and the zero that OpenSSL writes
  ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                    reinterpret_cast<const unsigned char*>(pair.data()), static_cast<int>(pair.size()));
  coded.pop_back();
  return "Basic " + coded;
}

}  // namespace ddprof
