#pragma once

#include <string>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// A profile of any format that we read; "-" is standard input.
Result<Profile> load_profile(const std::string& path);

}  // namespace ddprof
