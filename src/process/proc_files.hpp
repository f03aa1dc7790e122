#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// A process, or one thread of it, as /proc shows it right now.
struct RunningProcess {
  Pid pid{};
  Pid parent{};
  std::string name;  // 15 bytes at most, and whatever the process likes
  std::uint64_t threads = 0;
  bool is_zombie = false;  // of a process, its first thread

  [[nodiscard]] bool has_ended() const { return is_zombie && threads <= 1; }
};

// From the text of /proc/PID/stat.
[[nodiscard]] std::optional<RunningProcess> parse_process_stat(std::string_view text);
// None: there is no such process, or thread.
[[nodiscard]] std::optional<RunningProcess> read_process(std::int32_t number);
// Every process that we may see.
[[nodiscard]] std::vector<RunningProcess> list_processes();

// What descends from `roots`, behind these: parents before their children. What has ended is left out, and
// `except` with what descends from it. A process whose parent has ended is a child of init, and nothing tells
// whose it was.
[[nodiscard]] std::vector<RunningProcess> with_descendants(std::span<const Pid> roots,
                                                           std::span<const RunningProcess> processes,
                                                           Pid except);

// The names of a directory that are numbers: /proc, or /proc/PID/task.
[[nodiscard]] std::vector<std::int32_t> list_numbers(const std::string& directory);

// "12 (nginx)", fit for a terminal.
[[nodiscard]] std::string describe_process(Pid pid, std::string_view name);

}  // namespace ddprof
