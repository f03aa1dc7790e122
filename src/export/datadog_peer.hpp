#pragma once

#include "export/agent_address.hpp"
#include "export/datadog_body.hpp"
#include "export/peer.hpp"

namespace ddprof {

struct DatadogOptions {
  AgentAddress agent;
  DatadogIdentity identity;
  HttpHeaders headers;  // whose profiles they are: container, entity
};

// A Datadog agent.
Peer datadog_peer(const DatadogOptions& options);

}  // namespace ddprof
