#include "cli/upload_peers.hpp"

#include "cli/agent_choice.hpp"

namespace ddprof {

bool has_peers(const Options& options) { return chosen_agent(options).has_value(); }

std::vector<Peer> chosen_peers(const Options& options, const std::string& name, Pid target) {
  std::vector<Peer> peers;
  if (const auto agent = chosen_agent(options)) peers.push_back(agent_peer(*agent, options, name, target));
  return peers;
}

}  // namespace ddprof
