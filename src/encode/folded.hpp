#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "profile/profile.hpp"

namespace ddprof {

// The column that people look at first: the profile's default_value_type, else the last one. None without
// columns.
std::optional<std::size_t> default_column(const Profile& profile);

// "process;main;work 30303030" per distinct stack: root first, sums of the default column, sorted. What was
// lost or truncated is there too, as a frame in brackets.
std::string encode_folded(const Profile& profile);

}  // namespace ddprof
