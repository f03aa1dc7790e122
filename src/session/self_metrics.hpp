#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "export/statsd.hpp"
#include "session/summary.hpp"

namespace ddprof {

// What a period says about the profiler beyond its summary, where it is known.
struct PeriodFacts {
  std::uint64_t worker_restarts = 0;            // since the last period
  std::optional<double> sampling_rate_hz;       // in effect: --max-cpu may have lowered it
  std::optional<std::uint64_t> resident_bytes;  // of the profiler, now
  std::optional<Nanoseconds> unwinding_time;    // in this period, of all samples
  std::optional<Nanoseconds> symbolizing_time;
};

struct SelfMetric {
  enum class Kind : std::uint8_t { gauge, count };

  std::string_view name;  // without the prefix
  Kind kind = Kind::gauge;
  double value = 0;

  friend bool operator==(const SelfMetric&, const SelfMetric&) = default;
};

inline constexpr std::string_view kSelfMetricPrefix = "datadog.profiling.native.";

// The metrics of one period, from the summary when it began and when it closed. Names and kinds of the
// original where it has them (all gauges: what happened in the period); what is new and adds up is a count.
// A worker that began within the period has counted from zero: give it Summary() as `before`.
std::vector<SelfMetric> self_metrics(const Summary& before, const Summary& after, const PeriodFacts& facts);

// Hands them to the client and sends them.
void send_self_metrics(StatsdClient& client, const std::vector<SelfMetric>& metrics);

}  // namespace ddprof
