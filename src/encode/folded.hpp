#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// "process;main;work 30303030" per distinct stack: root first, sums of the default column, sorted. What was
// lost or truncated is there too, as a frame in brackets. The first frame is the process, where one is known.
//
// The format has no place for what the numbers are. The first line says it, "# value: cpu nanoseconds 0", in
// the form of a stack of no weight: flamegraph.pl and inferno draw nothing for it. A comment without a number
// would be refused by speedscope, which takes a file for folded stacks if every line ends in one.
std::string encode_folded(const Profile& profile);
inline constexpr std::string_view kFoldedValue = "# value: ";

// Reads "main;work 12" lines of any producer. All words before the count are frames, also one that names the
// process: the format does not say. A first frame such as "[worker tid=12]" (async-profiler) names the
// thread. Counts with fractions are multiplied by a power of ten, and a comment says so. Without a
// line that says what they are the column is "value", with no unit.
Result<Profile> decode_folded(std::string_view text, const DecodeLimits& limits = {});

}  // namespace ddprof
