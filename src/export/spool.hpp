#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/private_folder.hpp"
#include "base/result.hpp"
#include "export/peer.hpp"

namespace ddprof {

struct SpoolLimits {
  std::uint64_t bytes = std::uint64_t{100} << 20U;
  Nanoseconds age = std::chrono::hours(24);
};

// Parcels that nobody has taken yet, each a file in a folder that only this user may read. A parcel that was
// added is on the disk, whatever happens next; one that was cut short by a crash is skipped and counted.
// Several processes may share a spool: all may add, one at a time delivers.
class Spool {
 public:
  static Result<Spool> open(const std::string& folder, SpoolLimits limits);

  // Makes room by dropping the oldest, of what is too old or too much.
  Result<void> add(const Parcel& parcel);

  enum class Fate : std::uint8_t {
    delivered,  // removed
    refused,    // removed, and counted as dropped
    kept,       // nothing further is tried
  };
  // From the oldest to the newest. Does nothing while another process delivers.
  void deliver(const std::function<Fate(const Parcel&)>& attempt);

  struct State {
    std::uint64_t parcels = 0;  // waiting now
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;  // by this process
  };
  [[nodiscard]] State state() const;

 private:
  // From the oldest to the newest.
  [[nodiscard]] std::vector<PrivateFile> parcels() const;
  void drop(const std::string& name);
  // By processes that crashed.
  void remove_half_written(Nanoseconds now);
  void make_room(std::uint64_t wanted);

  Spool(PrivateFolder folder, SpoolLimits limits) : folder_(std::move(folder)), limits_(limits) {}

  PrivateFolder folder_;
  SpoolLimits limits_;
  std::uint64_t dropped_ = 0;
};

}  // namespace ddprof
