#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace ddprof {

// What /proc says of processes. This module names files of /proc here and nowhere else; those that can hang
// (environ, maps) are read by ForeignMemory.

// "/proc/12/maps"; our own process is "self", whatever number it has in the PID namespace of this /proc.
[[nodiscard]] std::string proc_path(Pid pid, std::string_view name = {});
[[nodiscard]] Result<std::string> read_proc_file(Pid pid, std::string_view name);
// Where a link leads; empty: it cannot be read.
[[nodiscard]] std::string read_proc_link(Pid pid, std::string_view name);
// The inode behind a path, 0 without one: namespaces are told apart by it.
[[nodiscard]] std::uint64_t inode_of(const std::string& path);
// The numbers of one line of /proc/PID/status: "Uid", "NSpid".
[[nodiscard]] std::vector<std::uint32_t> status_numbers(std::string_view status, std::string_view key);
// Threads of a process right now; empty when it is gone.
[[nodiscard]] std::vector<Tid> list_threads(Pid pid);
// The name of a thread, without the newline; none when it is gone.
[[nodiscard]] std::optional<std::string> read_thread_name(Pid pid, Tid tid);
// Whether the task exists and has not ended (a zombie has).
[[nodiscard]] bool is_alive(Tid tid);

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

// "12 (nginx)", fit for a terminal.
[[nodiscard]] std::string describe_process(Pid pid, std::string_view name);

}  // namespace ddprof
