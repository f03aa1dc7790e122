#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// A line of /proc/PID/mountinfo.
struct Mount {
  std::string_view point;
  std::uint64_t device = 0;               // as st_dev has it
  std::string_view type{};                // "ext4"
  std::optional<std::uint32_t> server{};  // the user whose program answers for it (FUSE)
};

// The mount that a path is on; none when that is the root of all, or not known.
[[nodiscard]] std::optional<Mount> find_mount(std::string_view path, std::string_view mountinfo);
[[nodiscard]] std::optional<Mount> find_mount_of_device(std::uint64_t device, std::string_view mountinfo);
// Whether some path, through whatever links, could lead to a file system that waits for another machine or
// for a program of a user.
[[nodiscard]] bool may_hang(std::string_view mountinfo);

}  // namespace ddprof
