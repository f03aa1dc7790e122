#pragma once

#include <cstdint>

#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "collect/perf/perf_record.hpp"

namespace ddprof {

// What one sample stands for: its period, a field of its raw data or a register, times the event's scale.
std::int64_t sample_value(const EventSpec& spec, const SampleRecord& record, const Registers& registers);

// `time` is already CLOCK_MONOTONIC.
SampleEvent to_sample_event(const SampleRecord& record, const EventSpec& spec, std::uint32_t event,
                            Nanoseconds time);
MapEvent to_map_event(const MmapRecord& record, Nanoseconds time);

// The value of a counter that was on for only part of the time, scaled to all of it.
std::int64_t scaled_value(const ReadRecord& record);

}  // namespace ddprof
