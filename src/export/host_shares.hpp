#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "export/destination.hpp"

namespace ddprof {

// What is one service's of a host's batch.
struct Share {
  ProcessIdentity identity;     // what all of its processes have in common; without a service: the host's own
  std::int64_t process_id = 0;  // 0: of several processes, or of none
  Batch batch;                  // has a part for each kind that the service has samples of
};

// The batch of a host as shares, one for each service in each container, so that a backend finds each where
// it belongs. What is of no known process (the kernel's threads, lost time) is the host's own share, and so
// is what would be one share too many. Values add up to those of the batch. Used by one thread.
class HostShares {
 public:
  // What differs in any of it is sent apart: all that is known of a process, or, for backends to which
  // processes of one service in one container are the same, no more than that.
  enum class Detail : std::uint8_t { process, container };

  static constexpr std::size_t kMostShares = 64;  // the host's own among them

  explicit HostShares(Detail detail, std::function<void(const std::string&)> say_notice = {},
                      std::size_t most = kMostShares)
      : detail_(detail), say_notice_(std::move(say_notice)), most_(most) {}

  // The largest first, the host's last, one in memory at a time. None is without samples.
  void cut(const Batch& batch, const std::function<void(Share)>& take);

 private:
  void tell(std::size_t left_out);

  Detail detail_;
  std::function<void(const std::string&)> say_notice_;  // once
  std::size_t most_;
};

}  // namespace ddprof
