#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// Where finished profiles go. Called from the finishing thread only, one profile after the other.
class Destination {
 public:
  virtual ~Destination() = default;
  // `sequence` counts the periods of this run from 0.
  virtual Result<void> send(const Profile& profile, std::uint64_t sequence) = 0;
  // For the summary: the file, directory or address.
  [[nodiscard]] virtual std::string describe() const = 0;
  // Called from another thread when there is no more time: whoever waits for a peer fails, now and from now
  // on.
  virtual void give_up() {}
};

}  // namespace ddprof
