#pragma once

#include "profile/profile.hpp"

namespace ddprof {

// Locations of one sample that Datadog's backend takes; what is deeper ends in a frame that says so.
inline constexpr std::size_t kMaxDatadogFrames = 600;

// The profile in the words that Datadog's backend knows: "cpu-time" before "cpu-samples", the label
// "process_id", a timestamp without a unit, and a location of its own for each inlined call.
Profile for_datadog(Profile profile);

}  // namespace ddprof
