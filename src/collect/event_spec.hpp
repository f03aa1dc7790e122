#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

// What one `-e` asks for, before any system call: "sCPU freq=199", "hINST p=1000000", "sched:sched_switch".
struct EventSpec {
  enum class Kind : std::uint8_t { software, hardware, tracepoint, allocation };
  enum class ValueSource : std::uint8_t { period, register_argument, raw_field };

  std::string name;            // as the user spells it: sCPU, hINST, group:event
  std::string label;           // column name in the profile: "cpu", "page-faults", ... or the user's l=
  std::string unit = "count";  // "nanoseconds" for clocks
  Kind kind = Kind::software;
  std::uint64_t config = 0;  // PERF_COUNT_SW_*, PERF_COUNT_HW_*; the tracepoint id is found when opened
  std::string tracepoint_group, tracepoint_name;
  bool is_clock = false;        // a value in nanoseconds of CPU time
  bool is_live = false;         // of allocations: those that are still there are told too
  std::uint64_t frequency = 0;  // exactly one of frequency and period is not 0
  std::uint64_t period = 0;
  ValueSource value_source = ValueSource::period;
  std::uint32_t argument = 0;  // register_argument: 1-based ABI argument, or perf register number with r=
  bool argument_is_register_number = false;
  std::uint32_t raw_offset = 0, raw_size = 0;
  double value_scale = 1.0;
  std::uint32_t stack_sample_size = 0;  // 0: the session's default

  // What one sample stands for: the period, or for a clock with a frequency the fixed period that the kernel
  // makes of it (perf_swevent_init_hrtimer); 0 for other frequencies, where each sample carries its own.
  [[nodiscard]] std::int64_t sample_value() const {
    if (period != 0) return static_cast<std::int64_t>(period);
    return is_clock && frequency != 0 ? static_cast<std::int64_t>(1'000'000'000 / frequency) : 0;
  }
};

// Parses one or more events separated by ';'. Unknown names and keys fail with the nearest valid one.
Result<std::vector<EventSpec>> parse_events(std::string_view text);

// The events of a preset: default, cpu_only, alloc_only, alloc_live_heap, cpu_live_heap.
Result<std::vector<EventSpec>> preset_events(std::string_view preset, bool attaching);

// The text of `-e help`.
std::string events_help();

// CPU time at 99 Hz.
EventSpec default_cpu_event();

}  // namespace ddprof
