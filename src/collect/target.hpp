#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "process/process_filter.hpp"

namespace ddprof {

// What is profiled, whatever engine does it.
struct Target {
  enum class Kind : std::uint8_t {
    about_to_exec,  // a process that will execve(); profiling starts with that call (a wrapped program)
    running,        // all threads of live processes, what they have started and what they will start (-p)
    host,           // every process of the machine (-g)
  };
  Kind kind = Kind::host;
  std::vector<Pid> pids;     // those that were named, the most important one first; none for the host
  bool has_children = true;  // false: the threads of the named processes, and nothing that they start
  // Of the host's processes.
  std::shared_ptr<const ProcessFilter> filter = nullptr;  // null: all
  std::optional<std::size_t> max_processes = {};          // at once; none: no limit

  [[nodiscard]] bool is_host() const { return kind == Kind::host; }
  [[nodiscard]] bool is_about_to_exec() const { return kind == Kind::about_to_exec; }
  // What the whole target is called by.
  [[nodiscard]] Pid root() const { return pids.empty() ? Pid{} : pids.front(); }

  static Target command(Pid pid) { return {Kind::about_to_exec, {pid}}; }
  static Target process(Pid pid) { return {Kind::running, {pid}}; }
  static Target processes(std::vector<Pid> pids, bool has_children) {
    return {Kind::running, std::move(pids), has_children};
  }
  static Target whole_host() { return {}; }
};

}  // namespace ddprof
