#include "encode/missed_values.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace ddprof {

namespace {

using MissedKind = std::pair<std::string_view, std::int64_t MissedValues::*>;

// How markers begin. The last is for all others.
constexpr auto kMissedKinds = std::to_array<MissedKind>({{"[truncated", &MissedValues::truncated},
                                                         {"[unsampled", &MissedValues::unsampled},
                                                         {"[kernel", &MissedValues::kernel},
                                                         {"[", &MissedValues::lost}});

std::uint8_t missed_kind(std::string_view marker) {
  const auto* kind = std::find_if(kMissedKinds.begin(), kMissedKinds.end(),
                                  [&](const MissedKind& one) { return marker.starts_with(one.first); });
  return static_cast<std::uint8_t>(1U << (kind - kMissedKinds.begin()));
}

}  // namespace

MissedValues missed_values(const Profile& profile, const FrameTable& frames, std::size_t column) {
  std::vector<std::uint8_t> kinds(profile.locations.size());  // a bit for each
  for (std::uint32_t at = 0; at < profile.locations.size(); ++at) {
    for (const std::uint32_t frame : frames.frames(at)) {
      if (frames[frame].is_marker) kinds[at] |= missed_kind(frames[frame].name);
    }
  }
  MissedValues missed;
  for (const ProfileSample& sample : profile.samples) {
    unsigned found = 0;
    for (const std::uint32_t location : sample.locations) found |= kinds[location];
    for (std::size_t kind = 0; found >> kind != 0; ++kind) {
      std::int64_t& sum = missed.*kMissedKinds[kind].second;
      if ((found >> kind & 1U) != 0) sum = saturating_add(sum, sample.values[column]);
    }
  }
  return missed;
}

}  // namespace ddprof
