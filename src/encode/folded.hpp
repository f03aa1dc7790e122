#pragma once

#include <string>

#include "profile/profile.hpp"

namespace ddprof {

// "process;main;work 30303030" per distinct stack: root first, sums of the default column, sorted. What was
// lost or truncated is there too, as a frame in brackets.
std::string encode_folded(const Profile& profile);

}  // namespace ddprof
