#include "session/self_metrics.hpp"

#include <algorithm>
#include <string>

namespace ddprof {

namespace {

// Counters of a run only grow; those of two runs may not, and then the later one stands for itself.
std::uint64_t grown(std::uint64_t before, std::uint64_t after) {
  return after >= before ? after - before : after;
}

std::int64_t grown(std::int64_t before, std::int64_t after) {
  return after >= before ? after - before : after;
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
  std::uint64_t input = 0;   // the copy of the stack ended
  std::uint64_t output = 0;  // more frames than are kept
  std::uint64_t errors = 0;  // everything else: no rule, bad memory, unknown code
  [[nodiscard]] std::uint64_t all() const { return input + output + errors; }
};

CutStacks cut_stacks(const Summary& summary) {
  CutStacks cut;
  for (const auto& [key, count] : summary.stopped) {
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

void add_sample_counts(MetricList& metrics, const Summary& before, const Summary& after) {
  const CollectorCounters& old = before.collector;
  const CollectorCounters& now = after.collector;
  metrics.gauge("event.count", grown(old.samples, now.samples));
  metrics.gauge("event.lost", grown(old.lost_records, now.lost_records));
  metrics.gauge("event.throttled", grown(old.throttled, now.throttled));
  metrics.gauge("event.malformed", grown(old.malformed_records, now.malformed_records));
  metrics.gauge("sample.count", grown(before.stacks, after.stacks));
  metrics.gauge("context.count", grown(before.contexts, after.contexts));
  metrics.gauge("context.lost", grown(old.lost_contexts, now.lost_contexts) +
                                    grown(before.contexts_over_budget, after.contexts_over_budget));
}

void add_unwinding(MetricList& metrics, const Summary& before, const Summary& after,
                   const PeriodFacts& facts) {
  const CutStacks old = cut_stacks(before);
  const CutStacks now = cut_stacks(after);
  metrics.gauge("unwind.stack.truncated_input", grown(old.input, now.input));
  metrics.gauge("unwind.stack.truncated_output", grown(old.output, now.output));
  metrics.gauge("unwind.errors", grown(old.errors, now.errors));
  metrics.gauge("unwind.stack.incomplete", grown(old.all(), now.all()));
  const std::uint64_t stacks = grown(before.stacks, after.stacks);
  if (facts.unwinding_time && stacks > 0) {
    metrics.gauge("unwind.avg_time_ns",
                  static_cast<double>(facts.unwinding_time->count()) / static_cast<double>(stacks));
  }
  if (facts.symbolizing_time)
    metrics.gauge("symbols.time_ms", static_cast<double>(facts.symbolizing_time->count()) / 1e6);
}

void add_cost(MetricList& metrics, const Summary& before, const Summary& after, const PeriodFacts& facts) {
  const Nanoseconds wall(grown(before.duration.count(), after.duration.count()));
  const Nanoseconds looked_at(grown(before.looked_at.count(), after.looked_at.count()));
  metrics.gauge("profile.duration_ms", static_cast<double>(looked_at.count()) / 1e6);
  metrics.gauge("profiler.cpu_usage.millicores",
                millicores(grown(before.own_cpu.count(), after.own_cpu.count()), wall));
  metrics.gauge("profiler.rss", facts.resident_bytes);
  metrics.gauge("profiler.peak_rss", after.own_memory_bytes);
  metrics.gauge("target_process.cpu_usage.millicores",
                millicores(grown(target_cpu(before), target_cpu(after)), looked_at));
  metrics.gauge("target_process.cpu_unsampled.millicores",
                millicores(grown(unsampled_cpu(before), unsampled_cpu(after)), looked_at));
  metrics.gauge("sampling.rate_hz", facts.sampling_rate_hz);
}

void add_sending(MetricList& metrics, const Summary& before, const Summary& after, const PeriodFacts& facts) {
  const DeliveryCounters& old = before.outcome.delivery;
  const DeliveryCounters& now = after.outcome.delivery;
  metrics.count("export.sent", grown(before.outcome.sent, after.outcome.sent));
  metrics.count("export.dropped", grown(before.outcome.dropped, after.outcome.dropped));
  metrics.count("export.failed", grown(before.outcome.failed, after.outcome.failed));
  metrics.count("export.retries", grown(old.retries, now.retries));
  metrics.count("export.bytes", grown(old.bytes, now.bytes));
  metrics.gauge("export.queue_depth", after.outcome.queued);
  metrics.gauge("spool.profiles", now.waiting);
  metrics.gauge("spool.bytes", now.waiting_bytes);
  metrics.count("spool.dropped", grown(old.dropped, now.dropped));
  metrics.count("worker.restarts", facts.worker_restarts);
}

}  // namespace

std::vector<SelfMetric> self_metrics(const Summary& before, const Summary& after, const PeriodFacts& facts) {
  MetricList metrics;
  add_sample_counts(metrics, before, after);
  add_unwinding(metrics, before, after, facts);
  add_cost(metrics, before, after, facts);
  add_sending(metrics, before, after, facts);
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
