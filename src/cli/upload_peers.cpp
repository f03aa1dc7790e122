#include "cli/upload_peers.hpp"

#include <memory>
#include <utility>

#include "cli/agent_choice.hpp"
#include "cli/found_agent.hpp"
#include "cli/host_identities.hpp"
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

// How the profile of a host is shared out among the peers, who all see the same processes.
class Sharing {
 public:
  Sharing(const Options& options, const Notice& say_notice)
      : is_wanted_(options.global && options.split_services),
        identities_(std::make_shared<HostIdentities>()),
        say_(said_once(say_notice)) {}

  [[nodiscard]] std::shared_ptr<HostShares> by_process() const {
    return shares([](ShareIdentity&) {});
  }
  // For peers who know processes. Null where nothing is shared out.
  [[nodiscard]] HostShares::Identify identify() const {
    if (!is_wanted_) return nullptr;
    return [identities = identities_](std::span<const SampleOrigin> origins) {
      return identities->identify(origins, HostIdentities::Clock::now());
    };
  }
  // For peers to whom processes of one service in one container are the same.
  [[nodiscard]] std::shared_ptr<HostShares> by_container() const {
    return shares([](ShareIdentity& identity) {
      for (std::string* field : {&identity.entity_id, &identity.external_environment, &identity.instance_id,
                                 &identity.process_tags})
        field->clear();
    });
  }

 private:
  template <typename Simplify>
  [[nodiscard]] std::shared_ptr<HostShares> shares(Simplify simplify) const {
    if (!is_wanted_) return nullptr;
    auto identify_simply = [identify = identify(), simplify](std::span<const SampleOrigin> origins) {
      auto found = identify(origins);
      for (ShareIdentity& identity : found) simplify(identity);
      return found;
    };
    return std::make_shared<HostShares>(std::move(identify_simply), say_);
  }

  bool is_wanted_;
  std::shared_ptr<HostIdentities> identities_;
  Notice say_;
};

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
  const Sharing sharing(options, say_notice);
  std::vector<Peer> peers;
  if (const auto agent = chosen_agent(options)) {
    peers.push_back(agent_peer(*agent, options, name, target, sharing.by_process()));
    peers.back().guard = found_agent_guard(options);
  }
  if (const auto url = chosen_collector(options))
    peers.push_back(collector_peer(*url, options, name, target, sharing.identify()));
  if (const auto url = chosen_pyroscope(options))
    peers.push_back(pyroscope_peer_of(*url, options, name, target, sharing.by_container()));
  return peers;
}

}  // namespace ddprof
