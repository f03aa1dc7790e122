#include "net/proxy.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "net/proxy_exceptions.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxUserBytes = 1024;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// What is no escape stays as it is: passwords were written before anybody thought of URLs.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    plain += is_escape ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

// RFC 7617.
std::string basic_authorization(std::string_view user_and_password) {
  std::string plain = without_escapes(user_and_password);
  if (plain.find(':') == std::string::npos) plain += ':';
  std::string coded(4 * ((plain.size() + 2) / 3) + 1, '\0');  // and the zero that OpenSSL writes
  ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                    reinterpret_cast<const unsigned char*>(plain.data()), static_cast<int>(plain.size()));
  coded.pop_back();
  return "Basic " + coded;
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
    proxy.authorization = basic_authorization(rest.substr(0, at));
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

}  // namespace ddprof
