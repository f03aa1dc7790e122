#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "collect/perf/task_roster.hpp"

namespace ddprof {

// The tasks (threads) that are being followed, kept current from fork, exec and exit records.
class TaskSet {
 public:
  struct Task {
    Pid pid{};
    bool was_sampled = false;
    // A counting event covers this task: its own, or one inherited from its parent.
    bool is_counted = false;
    std::uint64_t counted_since = 0;  // time of the record that proves it
    Tid covered_from{};  // itself, or the nearest ancestor that per-task events were opened on; 0: unknown
    std::uint32_t place = TaskRoster::kNowhere;
  };

  // Keeps a list of the tasks where a successor finds it.
  void share(TaskRoster roster) { roster_ = std::move(roster); }
  // Begins with the tasks that a predecessor followed.
  void read_roster(bool are_counted);

  // False when the task was already there with the same pid.
  bool add(Tid tid, Pid pid);
  // What was known of the task, empty when it was not there.
  bool remove(Tid tid, Task* last_state = nullptr);
  // exec leaves one thread, which takes over the pid.
  void exec(Pid pid);

  [[nodiscard]] Task* find(Tid tid);
  [[nodiscard]] bool has_process(Pid pid) const { return threads_of_.contains(to_int(pid)); }
  [[nodiscard]] bool empty() const { return tasks_.empty(); }
  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] std::vector<Tid> all() const;
  [[nodiscard]] std::vector<Tid> uncounted() const;
  [[nodiscard]] std::vector<Pid> processes() const;

 private:
  void forget(const Task& task);

  TaskRoster roster_;
  absl::flat_hash_map<std::int32_t, Task> tasks_;                // by tid
  absl::flat_hash_map<std::int32_t, std::uint32_t> threads_of_;  // by pid
};

}  // namespace ddprof
