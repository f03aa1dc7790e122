#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "profile/profile_builder.hpp"

namespace ddprof {

// What readers of formats without columns and labels of their own make of them.

// More value columns than any profile has; a file that has more wants to be large.
inline constexpr std::size_t kMaxColumns = 64;

// The position of a value column in the profile, added when it is new; none when there are too many.
std::optional<std::size_t> find_or_add_column(ProfileBuilder& builder, std::string_view type,
                                              std::string_view unit);

// "thread name" and so on, for those that are known.
std::vector<ProfileLabel> thread_labels(ProfileBuilder& builder, std::string_view thread,
                                        std::string_view tid, std::string_view process, std::string_view pid);

}  // namespace ddprof
