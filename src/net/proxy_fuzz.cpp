// Arbitrary text as the value of a variable and as a list of exceptions: what is chosen can stand in a
// request, no message shows a password, and a host that is named an exception is one.
#include <algorithm>
#include <cstdlib>

#include "net/proxy.hpp"
#include "net/proxy_connection.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  constexpr std::string_view kSecret = "xyzzy";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string value(text.substr(0, text.find('\n')));
  const std::string list(text.substr(std::min(value.size() + 1, text.size())));
  static const Url url = *Url::parse("https://intake.example:8443/");
  const ProxyVariables variables = [&](const std::string& name) {
    return name == "HTTPS_PROXY" ? value : name == "NO_PROXY" ? list : "";
  };
  const auto proxy = choose_proxy(url, variables);
  if (!proxy) {
    if (proxy.error().message.find(kSecret) != std::string::npos) std::abort();
  } else if (*proxy) {
    const std::string line = proxy_authorization_line(**proxy);
    if ((*proxy)->text().find_first_of("\r\n @") != std::string::npos) std::abort();
    if (!line.empty() && line.find_first_of("\r\n") != line.size() - 2) std::abort();
    if (is_excepted(list, url.host, url.port)) std::abort();
  }
  if (!is_excepted(list + ",intake.example", url.host, url.port)) std::abort();
  for (const char* host : {"10.1.2.3", "fd00::1"}) static_cast<void>(is_excepted(list, host, 80));
  return 0;
}
