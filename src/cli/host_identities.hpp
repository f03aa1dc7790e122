#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "export/host_shares.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

// Whose samples are those of each process, for uploads of a whole host. Processes are asked when they are
// first seen, again soon after (they may publish late), and then now and then. One that has ended takes after
// others of its service and container. Used by one thread.
class HostIdentities {
 public:
  using Clock = std::chrono::steady_clock;
  using Read = std::function<std::optional<ProcessIdentity>(Pid)>;

  explicit HostIdentities(Read read) : read_(std::move(read)) {}
  HostIdentities()
      : HostIdentities([memory = std::make_shared<ForeignMemory>()](Pid pid) {
          return read_process_identity(pid, *memory);
        }) {}

  std::vector<ShareIdentity> identify(std::span<const SampleOrigin> origins, Clock::time_point now);

 private:
  // A process that has another service than before is another one.
  struct Key {
    std::int64_t pid = 0;
    std::string service, container_id;

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::optional<ProcessIdentity> said;  // the last time that it could be asked
    Clock::time_point next_reading{};
  };

  const Entry& asked(const SampleOrigin& origin, Clock::time_point now);

  Read read_;
  std::map<Key, Entry> processes_, asked_;  // those of the batch before, and of the one at hand
  std::map<std::pair<std::string, std::string>, ShareIdentity> kin_;  // by service and container
};

}  // namespace ddprof
