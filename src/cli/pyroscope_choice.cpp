#include "cli/pyroscope_choice.hpp"

#include <utility>

#include "cli/agent_choice.hpp"
#include "cli/foreign_setting.hpp"
#include "cli/tag_pairs.hpp"
#include "export/addresses.hpp"
#include "export/pyroscope_peer.hpp"

namespace ddprof {

Result<void> check_pyroscope(Options& options) {
  if (options.pyroscope_url.empty()) return {};
  auto url = parse_base_url(options.pyroscope_url);
  if (url) return {};
  return refuse_setting(options, "pyroscope-url", &Options::pyroscope_url, url.error(),
                        "http(s)://host:4040");
}

std::optional<std::string> chosen_pyroscope(const Options& options) {
  if (!options.do_export || options.pyroscope_url.empty()) return std::nullopt;
  auto url = parse_base_url(options.pyroscope_url);
  return url ? std::optional(std::move(url).value()) : std::nullopt;
}

Peer pyroscope_peer_of(const std::string& url, const Options& options, const std::string& name,
                       const ProcessIdentity& target, std::shared_ptr<HostShares> shares) {
  const DatadogIdentity identity = identity_of(options, name, target);
  PyroscopeLabels labels = {
      {"env", identity.environment}, {"version", identity.version}, {"host", identity.host}};
  for (auto& tag : tag_pairs(options.tags)) labels.push_back(std::move(tag));
  return pyroscope_peer({.url = url,
                         .application = identity.service,
                         .labels = std::move(labels),
                         .user = options.pyroscope_user,
                         .password = options.pyroscope_password,
                         .tenant = options.pyroscope_tenant,
                         .shares = std::move(shares)});
}

}  // namespace ddprof
