#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/url.hpp"

namespace ddprof {

// Who carries requests to the hosts that cannot be reached otherwise.
struct Proxy {
  bool is_tls = false;
  std::string host;
  std::uint16_t port = 0;
  std::string authorization;  // value of the header Proxy-Authorization, a secret; empty: none
  std::string variable;       // that names it

  [[nodiscard]] std::string text() const;  // for messages: without user and password
};

// The value of an environment variable; empty when it is not set.
using ProxyVariables = std::function<std::string(const std::string& name)>;
[[nodiscard]] std::string environment_variable(const std::string& name);

// The proxy that the environment names for a URL, by the variables that curl reads: https_proxy, HTTPS_PROXY,
// http_proxy, all_proxy, ALL_PROXY, no_proxy, NO_PROXY. Not HTTP_PROXY, which under CGI is a header that any
// client may set. Nothing for hosts that NO_PROXY names, and for this machine: a proxy has its own localhost.
// Fails, without showing the value, when a variable does not hold the address of a proxy.
Result<std::optional<Proxy>> choose_proxy(const Url& url, const ProxyVariables& variables);

// Whether the list of NO_PROXY, such as "localhost,.example.org,10.0.0.0/8,[fd00::]/8,host:8080,*", has the
// host.
[[nodiscard]] bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port);

}  // namespace ddprof
