#include "export/intake_address.hpp"

#include <algorithm>

#include "net/url.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kTlsScheme = "https://";
constexpr std::string_view kIntakeHost = "intake.profile.";

bool is_domain(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  return text.find('.') != std::string_view::npos && std::all_of(text.begin(), text.end(), is_part);
}

}  // namespace

Result<AgentAddress> intake_address(const std::string& url, const std::string& site) {
  if (url.starts_with(kTlsScheme)) {
    TRY(Url::parse(url));
    AgentAddress address{.url = url, .socket = {}};
    while (address.url.ends_with('/')) address.url.pop_back();
    return address;
  }
  if (url.find("://") != std::string::npos)
    return make_error(ErrorCode::invalid_argument,
                      "the intake is reached over https://, which keeps the API key to itself");
  std::string_view domain = url.empty() ? site : url;
  if (domain.starts_with(kIntakeHost)) domain.remove_prefix(kIntakeHost.size());
  if (!is_domain(domain))
    return make_error(ErrorCode::invalid_argument, "{}: not a site of Datadog", domain.substr(0, 100));
  return AgentAddress{.url = fmt::format("{}{}{}", kTlsScheme, kIntakeHost, domain), .socket = {}};
}

}  // namespace ddprof
