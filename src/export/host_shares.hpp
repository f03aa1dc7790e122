#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.hpp"
#include "profile/split.hpp"

namespace ddprof {

// Whose a share of a host's profile is. What differs in any of it is sent apart.
struct ShareIdentity {
  std::string service;  // empty: the host's own share
  std::string environment, version;
  std::string container_id;
  std::string entity_id;             // how a Datadog agent finds the container's tags: "ci-…", "in-…"
  std::string external_environment;  // what the orchestrator says of it
  std::string instance_id;           // that a process publishes as its own; most have none
  std::string process_tags;          // likewise

  [[nodiscard]] bool is_host() const { return service.empty(); }
  friend std::strong_ordering operator<=>(const ShareIdentity&, const ShareIdentity&) = default;
};

struct Share {
  ShareIdentity identity;
  std::vector<std::int64_t> pids;  // that have samples in it, ascending
  Profile profile;
};

// The profile of a host as shares, one for each service in each container, so that a backend finds each where
// it belongs. What is nobody's (the kernel's threads, lost time) is the host's own share, and so is what
// would be one share too many. Values add up to those of the profile. Used by one thread.
class HostShares {
 public:
  // One identity for each origin.
  using Identify = std::function<std::vector<ShareIdentity>(std::span<const SampleOrigin>)>;

  static constexpr std::size_t kMostShares = 64;  // the host's own among them

  explicit HostShares(Identify identify, std::function<void(const std::string&)> say_notice = {},
                      std::size_t most = kMostShares)
      : identify_(std::move(identify)), say_notice_(std::move(say_notice)), most_(most) {}

  // The largest first, the host's last, one in memory at a time. None is without samples.
  void cut(const Profile& profile, const std::function<void(Share)>& take);

 private:
  void tell(std::size_t left_out);

  Identify identify_;
  std::function<void(const std::string&)> say_notice_;  // once
  std::size_t most_;
};

}  // namespace ddprof
