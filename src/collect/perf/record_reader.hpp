#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "collect/perf/perf_events.hpp"
#include "collect/perf/perf_record.hpp"
#include "collect/perf/sample_event.hpp"
#include "collect/perf/sampling_mode.hpp"

namespace ddprof {

// What each kernel record means: whose it is, what it changes, and the event that it becomes. Accounts for
// the records that become none.
class RecordReader {
 public:
  RecordReader(PerfEvents& events, SamplingMode& mode) : events_(events), mode_(mode) {}

  void read(std::span<const std::byte> record, const EventHandler& handle);

  void slow_down(std::uint32_t factor) { thinning_.set_factor(factor, events_.clock().now()); }
  // Whether processes live on whose events the kernel has taken away.
  [[nodiscard]] bool has_detached() const { return !detached_.empty(); }
  void forget_ended_detached();
  [[nodiscard]] const CollectorCounters& counters() const { return counters_; }
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  void on_record(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_tick(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle);
  void hand_sample(const SampleRecord& record, const EventSlot& slot, double weight, SampleBasis basis,
                   const EventHandler& handle);
  void on_record(const MmapRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const CommRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const ReadRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const LostRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const ThrottleRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const OtherRecord&, const EventSlot&, const EventHandler&) {}
  void on_fork(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_exit(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_detached(Pid pid, std::uint64_t time, const EventHandler& handle);
  void drop_doubles(const EventSlot& slot, Tid tid);

  PerfEvents& events_;
  SamplingMode& mode_;
  Thinning thinning_;
  CollectorCounters counters_;
  // Processes that have executed a program and mapped nothing of it yet, and those whose events the kernel
  // took away at that moment.
  absl::flat_hash_set<std::int32_t> just_executed_;
  absl::flat_hash_set<std::int32_t> detached_;
  std::vector<std::string> notices_;
};

}  // namespace ddprof
