#include "cli/upload_peers.hpp"

#include "cli/agent_choice.hpp"
#include "cli/otlp_choice.hpp"
#include "cli/pyroscope_choice.hpp"

namespace ddprof {

bool has_peers(const Options& options) {
  return chosen_agent(options).has_value() || chosen_collector(options).has_value() ||
         chosen_pyroscope(options).has_value();
}

std::vector<Peer> chosen_peers(const Options& given, const std::string& name, Pid target) {
  Options options = given;
  // All know the run by the same name.
  if (options.runtime_id.empty()) options.runtime_id = random_uuid();
  std::vector<Peer> peers;
  if (const auto agent = chosen_agent(options)) peers.push_back(agent_peer(*agent, options, name, target));
  if (const auto url = chosen_collector(options))
    peers.push_back(collector_peer(*url, options, name, target));
  if (const auto url = chosen_pyroscope(options))
    peers.push_back(pyroscope_peer_of(*url, options, name, target));
  return peers;
}

}  // namespace ddprof
