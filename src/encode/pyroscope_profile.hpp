#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "profile/profile.hpp"

namespace ddprof {

// Of a label there, in bytes, rather fewer than it takes: a character that is cut may become longer.
inline constexpr std::size_t kMaxPyroscopeValue = 2000;

// A name that a label may have there: letters, digits and underscores, no digit first.
std::string pyroscope_label_name(std::string_view text);

// The profile as Pyroscope takes it. Each distinct set of labels becomes a series there, and a profile may
// have 16000 samples: so numbers (times, threads, processes) are left out, the other labels get names that
// are valid there, and equal stacks become one. A column whose name has a hyphen would be refused.
Profile for_pyroscope(Profile profile);

}  // namespace ddprof
