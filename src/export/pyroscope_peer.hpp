#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/host_shares.hpp"
#include "export/peer.hpp"

namespace ddprof {

// Names and values, as Pyroscope's parameter `name` has them behind the application.
using PyroscopeLabels = std::vector<std::pair<std::string, std::string>>;

// "shop{env=prod,team=a}". There is no way to escape anything in it: characters that would end a name or a
// value, or that the server refuses, become underscores. Labels without a value are left out.
std::string pyroscope_name(std::string_view application, const PyroscopeLabels& labels);

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
