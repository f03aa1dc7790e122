#include "export/otlp_headers.hpp"

#include <algorithm>
#include <string>

#include "net/http_text.hpp"

namespace ddprof {

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// A token of RFC 9110.
bool is_header_name(std::string_view name) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

}  // namespace

Result<HttpHeaders> parse_otlp_headers(std::string_view text) {
  HttpHeaders headers;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (without_blanks(pair).empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto name = percent_decoded(without_blanks(pair.substr(0, equals)));
    const auto value = percent_decoded(
        equals == std::string_view::npos ? std::string_view("%") : without_blanks(pair.substr(equals + 1)));
    if (!name || !value || !is_header_name(*name) || !is_header_value(*value))
      return make_error(ErrorCode::invalid_argument,
                        "header {} is not of the form key=value, percent-encoded", number);
    headers.emplace_back(*name, *value);
  }
  return headers;
}

}  // namespace ddprof
