#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "collect/perf/perf_events.hpp"
#include "collect/perf/record_reader.hpp"
#include "collect/perf/sampling_mode.hpp"
#include "collect/target.hpp"

namespace ddprof {

// Samples with perf_event_open. The calling thread must outlive the collector: the rings hang on a silent
// event of that thread, so that they do not depend on which target thread lives longest.
//
// PerfEvents is what is open, SamplingMode which tasks are followed and how, RecordReader what their records
// mean.
class PerfCollector final : public Collector,
                            public Pausable,
                            public RateControl,
                            public ThreadContextSource,
                            public Handover {
 public:
  static Result<std::unique_ptr<PerfCollector>> open(const Target& target, const PerfOptions& options);

  PerfCollector(const Target& target, PerCpuUse per_cpu, std::unique_ptr<PerfEvents> events)
      : events_(std::move(events)), mode_(target, per_cpu, *events_), records_(*events_, mode_) {}

  Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) override;
  Result<void> drain(const EventHandler& handle) override;
  std::optional<std::int64_t> exact_total(std::uint32_t event) override;
  bool is_finished() override;
  [[nodiscard]] CollectorCounters counters() const override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::vector<std::string> notices() const override;
  [[nodiscard]] CollectorScope scope() const override;
  [[nodiscard]] std::vector<NeededCall> needed_calls() const override;

  Pausable* pausable() override { return this; }
  Result<void> pause(const EventHandler& handle) override;
  Result<void> resume() override { return events_->resume(); }
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const override;

  RateControl* rate_control() override { return this; }
  void slow_down(std::uint32_t factor) override;
  void deliver_at_once() override { events_->deliver_at_once(); }

  ThreadContextSource* thread_contexts() override { return events_->contexts() != nullptr ? this : nullptr; }
  bool read_thread_contexts(Pid pid, const ThreadVariable& variable) override {
    return events_->contexts() != nullptr && events_->contexts()->set(pid, variable);
  }

  Handover* handover() override { return this; }
  Result<void> take_over(int wake_fd, NoteSender sender) override;
  void follow(std::span<const std::byte> note, UniqueFd fd) override;
  void reclaim() override { events_->reclaim(); }

  [[nodiscard]] PerfMode mode() const { return mode_.mode(); }

 private:
  void read_rings(std::uint64_t limit, std::uint64_t totals_limit, std::uint64_t now,
                  const EventHandler& handle);

  std::unique_ptr<PerfEvents> events_;
  SamplingMode mode_;
  RecordReader records_;
  int wake_fd_ = -1;  // borrowed
  std::uint64_t wakeups_ = 0;
  std::uint64_t hung_up_at_ = 0;  // all events of tasks; 0: not yet
};

}  // namespace ddprof
