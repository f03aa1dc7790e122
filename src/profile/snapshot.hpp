#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ddprof {

// Columns that tell what is there when a period closes, such as live bytes. They add up over processes, and
// not over time: of several profiles of one program the last one counts.
[[nodiscard]] inline bool is_snapshot(std::string_view type) {
  return type.starts_with("inuse_") || type.starts_with("heap-live") || type == "live-space";
}

// The label of live samples that says how long their blocks are alive, and its values, the oldest first. A
// leak moves up through all of them; what a program needs while it runs stays in the highest from its start
// on.
inline constexpr std::string_view kAgeLabel = "age";
inline constexpr std::array<std::string_view, 6> kAgeNames = {
    "1 d or more", "1 h to 1 d", "10 min to 1 h", "1 to 10 min", "10 s to 1 min", "less than 10 s"};

}  // namespace ddprof
