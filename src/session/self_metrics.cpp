#include "session/self_metrics.hpp"

#include <algorithm>
#include <string>

namespace ddprof {

namespace {

std::int64_t grown(std::int64_t before, std::int64_t after) {
  return after >= before ? after - before : after;
}
Nanoseconds grown(Nanoseconds before, Nanoseconds after) {
  return Nanoseconds(grown(before.count(), after.count()));
}

class MetricList {
 public:
  template <typename Number>
  void gauge(std::string_view name, Number value) {
    list_.push_back({name, SelfMetric::Kind::gauge, static_cast<double>(value)});
  }
  template <typename Number>
  void gauge(std::string_view name, std::optional<Number> value) {
    if (value) gauge(name, *value);
  }
  void count(std::string_view name, std::uint64_t value) {
    list_.push_back({name, SelfMetric::Kind::count, static_cast<double>(value)});
  }
  [[nodiscard]] std::vector<SelfMetric> take() && { return std::move(list_); }

 private:
  std::vector<SelfMetric> list_;
};

// Incomplete stacks of the period, by what cut them short.
struct CutStacks {
  std::int64_t input = 0;   // the copy of the stack ended
  std::int64_t output = 0;  // more frames than are kept
  std::int64_t errors = 0;  // everything else: no rule, bad memory, unknown code
  [[nodiscard]] std::int64_t all() const { return input + output + errors; }
};

CutStacks cut_stacks(const Summary& summary) {
  CutStacks cut;
  for (const auto& [key, stacks] : summary.stopped) {
    const auto count = static_cast<std::int64_t>(stacks);
    switch (key.first) {
      case StopReason::complete:
        break;
      case StopReason::truncated_copy:
        cut.input += count;
        break;
      case StopReason::depth_limit:
        cut.output += count;
        break;
      default:
        cut.errors += count;
    }
  }
  return cut;
}

std::int64_t target_cpu(const Summary& summary) { return summary.exact_cpu.value_or(summary.sampled_cpu); }

// What no sample stands for: in the profile it has frames of its own.
std::int64_t unsampled_cpu(const Summary& summary) {
  std::int64_t sum = 0;
  for (const auto& [loss, value] : summary.losses) sum += value;
  return sum;
}

// Thousandths of a core.
double millicores(std::int64_t cpu_ns, Nanoseconds wall) {
  return wall.count() > 0 ? 1000.0 * static_cast<double>(cpu_ns) / static_cast<double>(wall.count()) : 0;
}

void add_sample_counts(MetricList& metrics, const Counters& period) {
  metrics.gauge("event.count", period.collector.samples);
  metrics.gauge("event.lost", period.collector.lost_records);
  metrics.gauge("event.throttled", period.collector.throttled);
  metrics.gauge("event.malformed", period.collector.malformed_records);
  metrics.gauge("sample.count", period.stacks);
  metrics.gauge("context.count", period.contexts);
  metrics.gauge("context.lost", period.collector.lost_contexts + period.contexts_over_budget);
}

void add_unwinding(MetricList& metrics, const Summary& before, const Summary& after, std::uint64_t stacks,
                   const PeriodFacts& facts) {
  const CutStacks old = cut_stacks(before);
  const CutStacks now = cut_stacks(after);
  metrics.gauge("unwind.stack.truncated_input", grown(old.input, now.input));
  metrics.gauge("unwind.stack.truncated_output", grown(old.output, now.output));
  metrics.gauge("unwind.errors", grown(old.errors, now.errors));
  metrics.gauge("unwind.stack.incomplete", grown(old.all(), now.all()));
  if (facts.unwinding_time && stacks > 0) {
    metrics.gauge("unwind.avg_time_ns",
                  static_cast<double>(facts.unwinding_time->count()) / static_cast<double>(stacks));
  }
  if (facts.symbolizing_time)
    metrics.gauge("symbols.time_ms", static_cast<double>(facts.symbolizing_time->count()) / 1e6);
}

void add_cost(MetricList& metrics, const Summary& before, const Summary& after, const PeriodFacts& facts) {
  const Nanoseconds wall = grown(before.duration, after.duration);
  const Nanoseconds observed = grown(before.observed, after.observed);
  metrics.gauge("profile.duration_ms", static_cast<double>(observed.count()) / 1e6);
  metrics.gauge("profiler.cpu_usage.millicores",
                millicores(grown(before.own.cpu, after.own.cpu).count(), wall));
  metrics.gauge("profiler.rss", facts.resident_bytes);
  metrics.gauge("profiler.peak_rss", after.own.memory_bytes);
  metrics.gauge("target_process.cpu_usage.millicores",
                millicores(grown(target_cpu(before), target_cpu(after)), observed));
  metrics.gauge("target_process.cpu_unsampled.millicores",
                millicores(grown(unsampled_cpu(before), unsampled_cpu(after)), observed));
  metrics.gauge("sampling.rate_hz", facts.sampling_rate_hz);
}

void add_sending(MetricList& metrics, const Counters& period, const Summary& now, const PeriodFacts& facts) {
  metrics.count("export.sent", period.sent);
  metrics.count("export.dropped", period.dropped);
  metrics.count("export.failed", period.failed);
  metrics.count("export.retries", period.delivery.retries);
  metrics.count("export.bytes", period.delivery.bytes);
  metrics.gauge("export.queue_depth", now.exported.queued);
  metrics.gauge("spool.profiles", now.delivery.waiting);
  metrics.gauge("spool.bytes", now.delivery.waiting_bytes);
  metrics.count("spool.dropped", period.delivery.dropped);
  metrics.count("worker.restarts", facts.worker_restarts);
}

}  // namespace

std::vector<SelfMetric> self_metrics(const Summary& before, const Summary& after, const PeriodFacts& facts) {
  MetricList metrics;
  const Counters period = grown(static_cast<const Counters&>(before), static_cast<const Counters&>(after));
  add_sample_counts(metrics, period);
  add_unwinding(metrics, before, after, period.stacks, facts);
  add_cost(metrics, before, after, facts);
  add_sending(metrics, period, after, facts);
  return std::move(metrics).take();
}

void send_self_metrics(StatsdClient& client, const std::vector<SelfMetric>& metrics) {
  for (const SelfMetric& metric : metrics) {
    const std::string name = std::string(kSelfMetricPrefix).append(metric.name);
    if (metric.kind == SelfMetric::Kind::gauge) {
      client.gauge(name, metric.value);
    } else {
      client.count(name, static_cast<std::int64_t>(metric.value));
    }
  }
  client.flush();
}

}  // namespace ddprof
