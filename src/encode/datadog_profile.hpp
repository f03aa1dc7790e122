#pragma once

#include <string>

#include "profile/profile.hpp"

namespace ddprof {

// Locations of one sample that Datadog's backend takes; what is deeper ends in a frame that says so.
inline constexpr std::size_t kMaxDatadogFrames = 600;

// Times of samples are multiples of this. Zeros in the last two bytes of a varint compress well: a profile
// with a timeline is a third smaller. Samples are many times further apart.
inline constexpr std::int64_t kDatadogTimeUnitNs = 1 << 14;

// The profile in the words that Datadog's backend knows: "cpu-time" before "cpu-samples", the label
// "process_id", a timestamp without a unit, and a location of its own for each inlined call.
Profile for_datadog(const Profile& profile);

// The pprof of that, without a copy of the samples: a third of the time for a profile with a timeline.
std::string encode_for_datadog(const Profile& profile);

}  // namespace ddprof
