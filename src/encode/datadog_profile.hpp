#pragma once

#include <cstdint>
#include <string>

#include "profile/profile.hpp"

namespace ddprof {

// Locations of one sample that Datadog's backend takes; what is deeper ends in a frame that says so.
inline constexpr std::size_t kMaxDatadogFrames = 600;

// Times of samples are multiples of this power of two, at most a sixteenth of the time between two
// samples of a thread: zeros in the last bytes of a varint compress well, and a profile with a timeline is a
// third smaller.
std::int64_t datadog_time_unit_ns(const Profile& profile);

// The profile in the words that Datadog's backend knows: "cpu-time" before "cpu-samples", the label
// "process_id", a timestamp without a unit, and a location of its own for each inlined call.
Profile for_datadog(const Profile& profile);

// The pprof of that, without a copy of the samples: a third of the time for a profile with a timeline.
std::string encode_for_datadog(const Profile& profile);

}  // namespace ddprof
