#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "export/addresses.hpp"
#include "export/datadog_body.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Where Datadog's profiles go: the agent that the command line, the environment or a file names, or that was
// found on this machine (see find_agent); with --agentless, the intake. None: nowhere.
std::optional<AgentAddress> chosen_agent(const Options& options);

// A new name for a run.
std::string random_uuid();

// Whose profiles they are. `name` is the service when the user gave it none.
DatadogIdentity identity_of(const Options& options, const std::string& name, const ProcessIdentity& target);

// `shares`: how the profile of a host is cut; null: it is sent whole.
Peer agent_peer(const AgentAddress& agent, const Options& options, const std::string& name,
                const ProcessIdentity& target, std::shared_ptr<HostShares> shares = nullptr);

}  // namespace ddprof
