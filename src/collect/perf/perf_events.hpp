#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/bpf/thread_context_reader.hpp"
#include "collect/perf/attach.hpp"
#include "collect/perf/event_plan.hpp"
#include "collect/perf/event_slots.hpp"
#include "collect/perf/perf_clock.hpp"
#include "collect/perf/perf_ring.hpp"
#include "collect/perf/ring_set.hpp"
#include "collect/target.hpp"

namespace ddprof {

// How much stack is copied with each sample of these events, on this machine, where nothing is chosen.
Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>& events);

// The open events of a collector and the rings that they write to: what is planned, what is open, whether it
// is on, and what a worker and its supervisor tell each other about it.
class PerfEvents {
 public:
  static Result<std::unique_ptr<PerfEvents>> open(const Target& target, const PerfOptions& options);

  PerfEvents(EventPlan plan, RingSet rings, RingSet totals_rings, PerfClock clock);
  PerfEvents(const PerfEvents&) = delete;
  PerfEvents& operator=(const PerfEvents&) = delete;

  [[nodiscard]] const EventPlan& plan() const { return plan_; }
  [[nodiscard]] const RingSet& rings() const { return rings_; }
  [[nodiscard]] const PerfClock& clock() const { return clock_; }
  [[nodiscard]] EventSlots& slots() { return slots_; }
  [[nodiscard]] const EventSlots& slots() const { return slots_; }
  [[nodiscard]] Attacher& attacher() { return attacher_; }
  // Null: not permitted, or not wanted.
  [[nodiscard]] ThreadContextReader* contexts() { return contexts_ ? &*contexts_ : nullptr; }
  [[nodiscard]] std::vector<std::string> notices() const;
  [[nodiscard]] const std::vector<Error>& refused() const { return attacher_.refused(); }

  // True when woken before the timeout.
  Result<bool> wait(std::chrono::milliseconds timeout, int wake_fd);
  // Hands over the records of all rings that are older than `limit`, those of totals apart, in order of time.
  template <typename Take>
  void read(std::uint64_t limit, std::uint64_t totals_limit, std::uint64_t now, const Take& take) {
    merge_.run(rings_.rings(), limit, now, take);
    totals_merge_.run(totals_rings_.rings(), totals_limit, now, take);
    if (contexts_)
      contexts_->forget_before(clock_.to_monotonic(std::min(limit, now)) -
                               PendingContexts::kGreatestDistance);
  }
  // Bytes in rings that made no sense, and contexts for which there was no room.
  [[nodiscard]] std::uint64_t malformed() const;
  [[nodiscard]] std::uint64_t lost_contexts() const { return contexts_ ? contexts_->lost() : 0; }

  Result<void> pause();
  Result<void> resume();
  [[nodiscard]] bool is_paused() const { return paused_at_ != 0; }
  [[nodiscard]] std::uint64_t paused_at() const { return paused_at_; }
  void disable_sampling();

  // Lengthens the periods of events that sample CPUs.
  void slow_down(std::uint32_t factor);
  void deliver_at_once();

  Result<void> take_over(EventNoteSender sender);
  // Tells the supervisor.
  void report(const EventNote& note) const {
    if (sender_) sender_(note, -1);
  }
  // In the supervisor. The time of a note is one that can have been.
  void follow(EventNote& note, UniqueFd fd);
  void reclaim();

 private:
  static constexpr std::uint32_t kSideBandPosition = 0;  // in the plan of a collector that has pauses

  void open_contexts();

  EventPlan plan_;
  RingSet rings_;
  RingSet totals_rings_;  // see task_totals_attr; empty when they could not be had
  PerfClock clock_;
  EventSlots slots_;
  std::optional<ThreadContextReader> contexts_;
  Attacher attacher_;
  RingMerge merge_, totals_merge_;
  EventNoteSender sender_;             // of a worker to its supervisor
  std::uint64_t paused_at_ = 0;        // 0: not paused
  bool has_no_room_for_more_ = false;  // for rings that deliver at once
  bool is_redirected_ = false;         // in a supervisor: events report to rings of its worker
  std::vector<std::string> notices_;
};

}  // namespace ddprof
