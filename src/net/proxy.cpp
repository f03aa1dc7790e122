#include "net/proxy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "net/http_text.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxUserBytes = 1024;

// What is no escape stays as it is: many passwords were not written for URLs.
std::string authorization_of(std::string_view user_and_password) {
  const std::string plain = percent_decoded_leniently(user_and_password);
  const std::size_t colon = std::min(plain.find(':'), plain.size());
  return basic_auth(plain.substr(0, colon), plain.substr(std::min(colon + 1, plain.size())));
}

// The value may hold a password: no message shows any of it.
Error proxy_error(const std::string& variable, std::string_view reason) {
  return with_hint(make_error(ErrorCode::permission_denied, "{}: {}", variable, reason),
                   variable + "=http://host:port, or http://user:password@host:port");
}

struct NamedProxy {
  std::string variable, value;
};

NamedProxy first_set(const ProxyVariables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::string value = variables(name);
    if (!value.empty()) return {name, std::move(value)};
  }
  return {};
}

Result<Proxy> parse_proxy(const NamedProxy& named) {
  std::string_view rest = named.value;
  std::string scheme = "http://";
  if (const std::size_t end = rest.find("://"); end != std::string_view::npos) {
    scheme = rest.substr(0, end + 3);
    std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    rest.remove_prefix(end + 3);
  }
  if (scheme.starts_with("socks"))
    return proxy_error(named.variable, "SOCKS is not supported, only proxies of HTTP");
  if (rest.ends_with('/')) rest.remove_suffix(1);
  Proxy proxy{.variable = named.variable};
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (at > kMaxUserBytes) return proxy_error(named.variable, "user and password are too long");
    proxy.authorization = authorization_of(rest.substr(0, at));
    rest.remove_prefix(at + 1);
  }
  const auto url = Url::parse(scheme + std::string(rest));
  if (!url || url->target != "/") return proxy_error(named.variable, "not the address of a proxy");
  proxy.is_tls = url->is_tls;
  proxy.host = url->host;
  proxy.port = url->port;
  return proxy;
}

}  // namespace

std::string Proxy::text() const {
  const Url url{.is_tls = is_tls, .host = host, .port = port};
  return fmt::format("{}://{}", is_tls ? "https" : "http", url.authority());
}

std::string environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

Result<std::optional<Proxy>> choose_proxy(const Url& url, const ProxyVariables& variables) {
  const NamedProxy named =
      url.is_tls ? first_set(variables, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                 : first_set(variables, {"http_proxy", "all_proxy", "ALL_PROXY"});
  if (named.value.empty()) return std::optional<Proxy>();
  constexpr std::string_view kThisMachine = "localhost,127.0.0.0/8,[::1]";
  const NamedProxy exceptions = first_set(variables, {"no_proxy", "NO_PROXY"});
  if (is_excepted(kThisMachine, url.host, url.port) || is_excepted(exceptions.value, url.host, url.port))
    return std::optional<Proxy>();
  return std::optional(TRY(parse_proxy(named)));
}

// Which hosts NO_PROXY means. It has no specification; this is what curl and Go have in common, and where
// they differ, curl: "example.org" and ".example.org" both mean the name and all names below it.

namespace {

struct HostAddress {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  unsigned bits = 0;  // 32 or 128
};

std::optional<HostAddress> parse_address(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string name(text);
  HostAddress address;
  if (::inet_pton(AF_INET, name.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (::inet_pton(AF_INET6, name.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  }
  return address.bits == 0 ? std::nullopt : std::optional(address);
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool have_same_prefix(const HostAddress& a, const HostAddress& b, unsigned bits) {
  if (a.bits != b.bits || bits > a.bits) return false;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned difference = static_cast<unsigned>(a.bytes[i / 8]) ^ b.bytes[i / 8];
    if ((difference >> (7 - i % 8) & 1U) != 0) return false;
  }
  return true;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_below(std::string_view host, std::string_view domain) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (domain.ends_with('.')) domain.remove_suffix(1);
  if (domain.starts_with("*.")) domain.remove_prefix(1);
  if (domain.starts_with('.')) domain.remove_prefix(1);
  if (domain.empty() || host.size() < domain.size()) return false;
  const std::size_t start = host.size() - domain.size();
  return is_same_name(host.substr(start), domain) && (start == 0 || host[start - 1] == '.');
}

// An address of IPv6 has colons of its own, so a port only follows a bracket or the one colon.
std::string_view take_port(std::string_view entry, std::optional<std::uint16_t>& port) {
  const std::size_t colon = entry.rfind(':');
  const bool is_port =
      colon != std::string_view::npos && colon > 0 && (entry[colon - 1] == ']' || entry.find(':') == colon);
  if (!is_port) return entry;
  port = parse_number<std::uint16_t>(entry.substr(colon + 1)).value_or(0);  // no host has that one
  return entry.substr(0, colon);
}

bool means(std::string_view entry, std::string_view host, std::uint16_t port) {
  if (entry == "*") return true;
  const auto address = parse_address(host);
  if (const std::size_t slash = entry.find('/'); slash != std::string_view::npos) {
    const auto network = parse_address(entry.substr(0, slash));
    const auto bits = parse_number<unsigned>(entry.substr(slash + 1));
    return address && network && bits && have_same_prefix(*address, *network, *bits);
  }
  std::optional<std::uint16_t> wanted_port;
  entry = take_port(entry, wanted_port);
  if (wanted_port && *wanted_port != port) return false;
  const auto wanted = parse_address(entry);
  if (address || wanted) return address && wanted && have_same_prefix(*address, *wanted, address->bits);
  return is_below(host, entry);
}

}  // namespace

bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(kSeparators), list.size());
    if (end != 0 && means(list.substr(0, end), host, port)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace ddprof
