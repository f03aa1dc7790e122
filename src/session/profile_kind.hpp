#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "profile/aggregator.hpp"
#include "session/closed_period.hpp"
#include "session/cpu_account.hpp"

namespace ddprof {

// One kind of profile, with columns, sums, and losses of its own: CPU time and what is counted beside it, or
// allocations.
class ProfileKind {
 public:
  // Of those of the events that are of this kind. The events outlive it.
  ProfileKind(std::string name, const std::vector<EventSpec>& events, bool has_timeline,
              const CpuAccountOptions& cpu, Collector& collector, const ProcessTable& processes,
              const AggregatorBudget& budget);

  // "cpu" or "alloc".
  static std::string_view name_of(const EventSpec& event);

  [[nodiscard]] bool has(std::uint32_t event) const { return columns_[event].has_value(); }
  void add(const SampleEvent& sample, ThreadKey thread, std::span<const Frame> frames,
           const SampleContext* context);
  // What the engine lost of this kind, under the process that is the target.
  void add_lost(Pid root, std::int64_t count, std::int64_t value);
  // The profile of the period that ends, with everything that it should hold. `slow_down`: how many times the
  // period that was asked for a sample stands for.
  ClosedPart close(Nanoseconds begin, Nanoseconds end, bool is_final, std::uint32_t slow_down);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_empty() const { return aggregator_.stacks() == 0; }
  // What makes CPU time add up; null: there is no clock among the events of this kind.
  [[nodiscard]] CpuAccount* account() { return account_ ? &*account_ : nullptr; }

 private:
  // Which columns an event adds to. The first event of a kind also counts samples; clocks have a hidden
  // column, behind all visible ones, for estimates that are folded into the visible one when the period
  // closes.
  struct EventColumns {
    std::optional<std::uint32_t> samples;
    std::uint32_t value = 0;
    std::optional<std::uint32_t> estimate;
  };

  std::vector<Column> lay_out_columns(const std::vector<EventSpec>& events);

  std::string name_;
  bool has_timeline_;
  const EventSpec* first_ = nullptr;                  // of this kind
  std::vector<std::optional<EventColumns>> columns_;  // by event; none: of another kind
  std::uint32_t visible_columns_ = 0;
  Aggregator aggregator_;
  std::optional<CpuAccount> account_;
};

}  // namespace ddprof
