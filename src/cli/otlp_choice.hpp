#pragma once

#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cli/options.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Holds what is said about a collector to what it can be.
Result<void> check_otlp(Options& options);

// Where a collector takes profiles. None by default.
std::optional<std::string> chosen_collector(const Options& options);

// `name` is the service when nobody gave it one. `identify`: what processes of a host say of themselves.
Peer collector_peer(const std::string& url, const Options& options, const std::string& name, Pid target,
                    HostShares::Identify identify = {});

}  // namespace ddprof
