#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "cli/options.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Whether profiles are sent to anybody.
bool has_peers(const Options& options);

// Where it was not chosen: profiles that are sent to Datadog have the times of their samples, those in files
// have not. Other receivers get times only when they were asked for: Pyroscope refuses them over OTLP.
void choose_timeline(Options& options);

// Those whom the command line, the environment or a file names. None by default. `name` is the service when
// nobody gave it one. With -g, those who know no processes get a share for each service.
std::vector<Peer> chosen_peers(const Options& options, const std::string& name, Pid target,
                               const std::function<void(const std::string&)>& say_notice);

}  // namespace ddprof
