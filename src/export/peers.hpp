#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "export/destination_options.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Where Datadog's profiles go: the agent that the command line, the environment or a file names, or that was
// found on this machine (see AgentProbe); with --agentless, the intake. None: nowhere.
std::optional<AgentAddress> chosen_agent(const DestinationOptions& options);
// Where a collector takes profiles. None by default.
std::optional<std::string> chosen_collector(const DestinationOptions& options);
// The address of a Pyroscope server. None by default.
std::optional<std::string> chosen_pyroscope(const DestinationOptions& options);

// Whether profiles are sent anywhere.
bool has_peers(const DestinationOptions& options);

// Each as the options describe it. `name` is the service when the user gave it none. `shares`: how the
// profile of a host is cut; null: it is sent whole. `tells_processes`: what each process of a host says of
// itself.
Peer agent_peer(const AgentAddress& agent, const DestinationOptions& options, const std::string& name,
                const ProcessIdentity& target, std::shared_ptr<HostShares> shares = nullptr);
Peer collector_peer(const std::string& url, const DestinationOptions& options, const std::string& name,
                    const ProcessIdentity& target, bool tells_processes = false);
Peer pyroscope_peer_of(const std::string& url, const DestinationOptions& options, const std::string& name,
                       const ProcessIdentity& target, std::shared_ptr<HostShares> shares = nullptr);

// All that the options name; none by default. With -g, those that know no processes get a share for each
// service.
std::vector<Peer> chosen_peers(const DestinationOptions& options, const std::string& name, Pid target,
                               const std::function<void(const std::string&)>& say_notice);

}  // namespace ddprof
