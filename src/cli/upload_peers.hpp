#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "cli/options.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Whether profiles are sent to anybody.
bool has_peers(const Options& options);

// Those whom the command line, the environment or a file names. None by default. `name` is the service when
// nobody gave it one.
std::vector<Peer> chosen_peers(const Options& options, const std::string& name, Pid target);

}  // namespace ddprof
