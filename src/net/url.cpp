#include "net/url.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ddprof {

namespace {

constexpr std::size_t kMaxUrlBytes = 8192;
constexpr std::size_t kMaxHostBytes = 253;  // RFC 1035

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}
bool is_ipv6_character(char c) { return is_host_character(c) || c == ':' || c == '%'; }
bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

Error url_error(std::string_view text, std::string_view reason) {
  std::string shown(text.substr(0, 200));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return !is_visible(c); }, '?');
  return make_error(ErrorCode::invalid_argument, "read URL {}: {}", shown, reason);
}

}  // namespace

Result<HostAndPort> HostAndPort::parse(std::string_view text) {
  const auto refused = [](const char* why) { return make_error(ErrorCode::invalid_argument, "{}", why); };
  const bool is_bracketed = text.starts_with('[');
  const std::size_t end = is_bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return refused("no host in it");
  const std::string_view host = text.substr(is_bracketed ? 1 : 0, end - (is_bracketed ? 1 : 0));
  if (host.empty() || host.size() > kMaxHostBytes) return refused("no host in it");
  if (!std::all_of(host.begin(), host.end(), is_bracketed ? is_ipv6_character : is_host_character))
    return refused("not a host");
  // A name needs no brackets.
  if (is_bracketed && host.find(':') == std::string_view::npos) return refused("not a host");
  HostAndPort parts{.host = std::string(host), .port = std::nullopt};
  text.remove_prefix(end + (is_bracketed ? 1 : 0));
  if (text.empty()) return parts;
  if (!text.starts_with(':')) return refused("no host in it");
  const auto [last, error] =
      std::from_chars(text.data() + 1, text.data() + text.size(), parts.port.emplace());
  if (error == std::errc{} && last == text.data() + text.size() && *parts.port != 0) return parts;
  return refused("the port must be 1 to 65535");
}

Result<Url> Url::parse(std::string_view text) {
  Url url;
  std::string_view rest = text;
  if (text.size() > kMaxUrlBytes) return url_error(text, "too long");
  if (rest.starts_with("https://")) {
    url.is_tls = true;
    url.port = 443;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return url_error(text, "neither http:// nor https://");
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos)
    return make_error(ErrorCode::invalid_argument, "read URL: user names in URLs are not supported");
  auto place = HostAndPort::parse(authority);
  if (!place) return url_error(text, "not a host and port");
  url.host = std::move(place->host);
  if (place->port) url.port = *place->port;
  rest.remove_prefix(authority.size());
  rest = rest.substr(0, rest.find('#'));
  if (!std::all_of(rest.begin(), rest.end(), is_visible)) return url_error(text, "not a path");
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return url;
}

Result<Url> Url::follow(std::string_view location) const {
  const std::string scheme = is_tls ? "https:" : "http:";
  const std::string here = scheme + "//" + authority();
  if (location.starts_with("//")) return parse(scheme + std::string(location));
  if (location.starts_with('/')) return parse(here + std::string(location));
  // A scheme ends at a colon before any slash.
  const std::size_t colon = location.find(':');
  if (colon != std::string_view::npos && colon < location.find('/')) return parse(location);
  const std::string path = target.substr(0, target.find('?'));
  return parse(here + path.substr(0, path.rfind('/') + 1) + std::string(location));
}

std::string Url::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (is_tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

std::string Url::text() const {
  return fmt::format("{}://{}{}", is_tls ? "https" : "http", authority(), target);
}

}  // namespace ddprof
