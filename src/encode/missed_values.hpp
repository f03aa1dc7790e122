#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

// What the markers of a profile say was missed, in one of its columns. A sample counts once for each kind.
struct MissedValues {
  std::int64_t lost = 0;       // no stack at all, for any reason that is not one of the others
  std::int64_t truncated = 0;  // a part of a stack
  std::int64_t unsampled = 0;  // shorter than a sampling period
  std::int64_t kernel = 0;     // in the kernel, which may not be sampled

  [[nodiscard]] bool is_any() const { return lost != 0 || truncated != 0 || unsampled != 0 || kernel != 0; }
};

MissedValues missed_values(const Profile& profile, const FrameTable& frames, std::size_t column);

}  // namespace ddprof
