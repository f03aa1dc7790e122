#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

// The followed tasks, in memory that is shared with the next worker: which processes belong to the target
// cannot be told from /proc once their parents are gone.
class TaskRoster {
 public:
  struct Entry {
    std::int32_t tid = 0;  // 0: free
    std::int32_t pid = 0;
  };
  static constexpr std::size_t kEntries = 65'536;  // tasks past it are found by their parents
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  TaskRoster() = default;  // keeps nothing
  static Result<TaskRoster> create();
  explicit TaskRoster(MappedRegion memory) : memory_(std::move(memory)) {}

  std::uint32_t add(const Entry& entry);  // where it is, or kNowhere
  void remove(std::uint32_t at);

  // What is in the roster, by place. To be asked once, by a successor. A worker may have written anything
  // there: what is no number of a task is passed over.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Entry>> read();

 private:
  [[nodiscard]] std::span<Entry> entries() const;

  MappedRegion memory_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;  // never used from here on
};

// The tasks (threads) that are being followed, brought up to date by fork, exec and exit records.
class TaskSet {
 public:
  struct Task {
    Pid pid{};
    std::uint32_t samples = 0;
    // A counting event covers this task: its own, or one inherited from its parent.
    bool is_counted = false;
    std::uint64_t counted_since = 0;  // time of the record that proves it
    Tid covered_from{};  // itself, or the nearest ancestor that per-task events were opened on; 0: unknown
    std::uint32_t place = TaskRoster::kNowhere;
    std::uint32_t ticks_generation = 0;  // of its events, see FineSampling; 0: it never had any
    std::uint64_t ticks_since = 0;
    std::uint32_t ticks = 0;
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
  [[nodiscard]] const Task* find(Tid tid) const;
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

// Notices a program that spends much of its CPU time in tasks of a few sampling periods. Events of a task
// begin a fresh period with it: what such tasks do first is never sampled, and what they do at each whole
// period always. Every fork pays for the inherited events, too.
class ShortTasks {
 public:
  // One with fewer samples than this is short.
  static constexpr std::uint32_t kFewSamples = 8;

  void note_sample() { window_.of_all += 2; }
  void note_end(std::uint64_t time_ns, std::uint32_t samples);
  // What the kernel counted of a task that has ended, on one CPU.
  void note_total(std::uint64_t cpu_ns) { window_.cpu_ns += cpu_ns; }
  // Closes windows that have passed; true once short tasks, many of them, had a good part of one.
  bool matter(std::uint64_t now_ns);
  // Whether they have a good part of the time now, however little that is.
  [[nodiscard]] bool matter_now() const { return since_they_mattered_ < kSomeJudgements; }
  // CPU time of one, by those that ended before the last judgement; 0: not known.
  [[nodiscard]] std::uint64_t mean_ns() const { return mean_ns_; }
  [[nodiscard]] std::uint64_t ended() const { return all_ended_; }

 private:
  static constexpr std::uint32_t kSomeJudgements = 4;

  // What happened in a stretch of time.
  struct Stretch {
    std::uint64_t ended = 0;                 // short ones
    std::uint64_t of_short = 0, of_all = 0;  // CPU time, in half periods
    std::uint64_t cpu_ns = 0;                // of short ones
    std::uint64_t windows = 0;

    void add(const Stretch& other);
    [[nodiscard]] bool has_many() const;
    [[nodiscard]] bool is_good_part() const;
  };

  void close_window();
  void judge(const Stretch& stretch);

  std::uint64_t window_start_ = 0;
  Stretch window_;
  Stretch unjudged_;             // windows that were too short to judge by
  std::uint64_t all_ended_ = 0;  // short ones
  std::uint64_t mean_ns_ = 0;
  std::uint32_t since_they_mattered_ = kSomeJudgements;
  bool have_mattered_ = false;
};

}  // namespace ddprof
