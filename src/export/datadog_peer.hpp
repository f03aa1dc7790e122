#pragma once

#include <functional>
#include <memory>
#include <string>

#include "export/addresses.hpp"
#include "export/datadog_forms.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

struct DatadogOptions {
  AgentAddress agent;   // or the intake, when there is a key
  std::string api_key;  // of the intake; empty: an agent, which has one of its own
  IntakeFormat format = IntakeFormat::version_4;
  DatadogIdentity identity;
  ProcessIdentity target;  // where it lives
  // Whether the user has chosen them: what the target publishes of itself stands for the others.
  bool has_service = false, has_runtime_id = false;
  std::shared_ptr<HostShares> shares = {};           // null: one upload for all that there is in a batch
  std::function<std::string()> new_runtime_id = {};  // for each share but the host's own
};

// A Datadog agent, or the intake.
Peer datadog_peer(const DatadogOptions& options);

}  // namespace ddprof
