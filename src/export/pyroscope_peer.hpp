#pragma once

#include <memory>
#include <string>

#include "export/host_shares.hpp"
#include "export/peer.hpp"
#include "export/pyroscope_name.hpp"

namespace ddprof {

struct PyroscopeOptions {
  std::string url;  // of the server, without a slash at its end
  std::string application;
  PyroscopeLabels labels;
  std::string user, password;               // none: both empty
  std::string tenant;                       // of a server with several; empty: none
  std::shared_ptr<HostShares> shares = {};  // null: one profile for all that there is in a batch
};

// A Pyroscope server.
Peer pyroscope_peer(const PyroscopeOptions& options);

}  // namespace ddprof
