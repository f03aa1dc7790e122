#include "cli/upload_peers.hpp"

#include <memory>
#include <utility>

#include "cli/agent_choice.hpp"
#include "cli/found_agent.hpp"
#include "cli/option_table.hpp"
#include "cli/otlp_choice.hpp"
#include "cli/pyroscope_choice.hpp"

namespace ddprof {

namespace {

using Notice = std::function<void(const std::string&)>;

Notice said_once(const Notice& say) {
  return [say, was_said = std::make_shared<bool>(false)](const std::string& text) {
    if (say && !std::exchange(*was_said, true)) say(text);
  };
}

// Where it lives, and what it was started with; empty for a host, and where no peer would be told.
ProcessIdentity identity_of_target(const Options& options, Pid target) {
  if (options.global || !has_peers(options)) return {};
  ForeignMemory memory;
  ProcessIdentity identity = read_process_identity(target, *read_confinement(target), memory);
  identity.pid = to_int(target);
  return identity;
}

}  // namespace

bool has_peers(const Options& options) {
  return chosen_agent(options).has_value() || chosen_collector(options).has_value() ||
         chosen_pyroscope(options).has_value();
}

void choose_timeline(Options& options) {
  const std::size_t option = *find_option("timeline");
  if (options.origins.size() <= option || options.origins[option].kind != Origin::Kind::default_value) return;
  options.timeline = chosen_agent(options).has_value();
  options.origins[option].detail =
      options.timeline ? "uploads to Datadog have it" : "off but for uploads to Datadog";
}

std::vector<Peer> chosen_peers(const Options& given, const std::string& name, Pid target,
                               const std::function<void(const std::string&)>& say_notice) {
  Options options = given;
  // All know the run by the same name.
  if (options.runtime_id.empty()) options.runtime_id = random_uuid();
  const ProcessIdentity who = identity_of_target(options, target);
  const bool is_split = options.global && options.split_services;
  const auto shares = [is_split, say = said_once(say_notice)](HostShares::Detail detail) {
    return is_split ? std::make_shared<HostShares>(detail, say) : nullptr;
  };
  std::vector<Peer> peers;
  if (const auto agent = chosen_agent(options)) {
    peers.push_back(agent_peer(*agent, options, name, who, shares(HostShares::Detail::process)));
    peers.back().guard = found_agent_guard(options);
  }
  if (const auto url = chosen_collector(options))
    peers.push_back(collector_peer(*url, options, name, who, is_split));
  if (const auto url = chosen_pyroscope(options))
    peers.push_back(pyroscope_peer_of(*url, options, name, who, shares(HostShares::Detail::container)));
  return peers;
}

}  // namespace ddprof
