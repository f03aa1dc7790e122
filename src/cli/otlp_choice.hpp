#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Holds what is said about a collector to what it can be.
Result<void> check_otlp(Options& options);

// Where a collector takes profiles. None by default.
std::optional<std::string> chosen_collector(const Options& options);

// `name` is the service when the user gave it none. `tells_processes`: what each process of a host says of
// itself.
Peer collector_peer(const std::string& url, const Options& options, const std::string& name,
                    const ProcessIdentity& target, bool tells_processes = false);

}  // namespace ddprof
