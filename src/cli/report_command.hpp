#pragma once

#include "base/result.hpp"
#include "cli/kept_profiles.hpp"
#include "cli/options.hpp"

namespace ddprof {

// ddprof report [FILE|DIR…]: reads profiles, merges several, prints what they hold. Returns the exit status.
int report(const Options& options);

// --since, --until and --service of the command line.
Result<ProfileChoice> profile_choice(const Options& options);

// Where profiles are kept when no other place was named. Fails when there is no such place.
Result<std::string> kept_folder();

}  // namespace ddprof
