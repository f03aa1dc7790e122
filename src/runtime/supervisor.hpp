#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_region.hpp"
#include "runtime/memory_group.hpp"
#include "runtime/profiling.hpp"
#include "runtime/signal_inbox.hpp"
#include "runtime/worker.hpp"

namespace ddprof {

// Keeps a worker at work until the work is done. It holds what the collector has opened, so that a worker
// may die without losing it; it reads none of what was collected. A worker that crashes, hangs or asks for it
// is replaced by another, which takes over the same collector. One that cannot even be killed, because it
// hangs in the kernel, is left behind. Nothing that a worker says or writes is used unchecked.
class Supervisor {
 public:
  // All outlive it. Nothing else may run in this process: it forks.
  static Result<Supervisor> create(PreparedProfiling& prepared, const Target& target,
                                   const ProfilingRequest& request, SignalInbox& inbox);

  // True when the target has ended. Asked whenever a signal has come; after it the worker has to finish.
  std::function<bool()> has_target_ended;

  // Until there is nothing left to do: SIGTERM and SIGINT ask for it, SIGUSR1 for another worker. Returns the
  // exit status that follows from the exports.
  int run();

  [[nodiscard]] SharedState& shared() { return *shared_; }

 private:
  struct End {
    WorkerEnd cause = WorkerEnd::none;  // none: it has done its work
    int exit_status = 0;
    std::string text;  // of a crash
  };

  Supervisor(PreparedProfiling& prepared, const Target& target, const ProfilingRequest& request,
             SignalInbox& inbox, MappedRegion memory);

  Result<void> start_worker();
  End watch();
  [[nodiscard]] Nanoseconds promised() const;
  // Returns once something may have happened, `until` at the latest.
  void wait_for_news(Nanoseconds until);
  void take_notes();
  void obey_signals();
  void obey_control();
  void stop();
  // Answers who has asked for a profile before its time, once it has left.
  void finish_flush();
  // The worker's end, or nothing when it has not ended within `patience`.
  std::optional<int> await_end(Nanoseconds patience);
  [[nodiscard]] End reap(bool was_hung);
  [[nodiscard]] End judge(int status) const;
  void leave_behind();
  // Collects what was left behind and has ended since; true when another worker may be started.
  bool make_room();
  void note(const End& end);
  void back_off();

  PreparedProfiling& prepared_;
  const Target& target_;
  const ProfilingRequest& request_;
  SignalInbox& inbox_;
  MappedRegion memory_;
  SharedState* shared_;
  std::optional<MemoryGroup> memory_group_;
  NoteChannel channel_;
  pid_t worker_ = -1;
  bool is_worker_gone_ = false;
  bool must_stop_ = false;
  bool is_flushing_ = false;
  bool has_reported_crash_ = false;  // on the terminal or in the log
  std::vector<pid_t> left_behind_;
  Nanoseconds worker_started_{};
  std::uint64_t exported_before_ = 0;
  std::uint32_t failures_ = 0;  // in a row, without a profile in between
};

// A supervisor from beginning to end. Returns the exit status.
int supervise(PreparedProfiling& prepared, const Target& target, const ProfilingRequest& request,
              SignalInbox& inbox);

}  // namespace ddprof
