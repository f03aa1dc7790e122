#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// Several times what vm.max_map_count allows by default.
inline constexpr std::size_t kMaxMapsBytes = std::size_t{64} << 20U;

// One line of /proc/PID/maps. `path` points into the text that was parsed.
struct ProcMapsLine {
  Address start{};
  Address end{};
  bool is_executable = false;
  std::uint64_t file_offset = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::string_view path{};
};

// Parses one line without its newline; none when it is not of the kernel's form.
std::optional<ProcMapsLine> parse_proc_maps_line(std::string_view line);

// Executable lines of a whole maps file, in the kernel's (ascending) order.
std::vector<ProcMapsLine> parse_executable_maps(std::string_view text);

}  // namespace ddprof
