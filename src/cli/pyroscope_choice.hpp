#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Holds what is said about a Pyroscope server to what it can be.
Result<void> check_pyroscope(Options& options);

// The address of a Pyroscope server. None by default.
std::optional<std::string> chosen_pyroscope(const Options& options);

// `name` is the service when the user gave it none. `shares`: how the profile of a host is cut; null: it is
// sent whole.
Peer pyroscope_peer_of(const std::string& url, const Options& options, const std::string& name,
                       const ProcessIdentity& target, std::shared_ptr<HostShares> shares = nullptr);

}  // namespace ddprof
