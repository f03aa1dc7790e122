#include "cli/metrics_reporter.hpp"

#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "export/statsd.hpp"
#include "session/budget.hpp"
#include "session/self_metrics.hpp"

namespace ddprof {

namespace {

std::string server_address(const Options& options) {
  if (!options.internal_stats.empty()) return options.internal_stats;
  const char* shared = std::getenv("DD_DOGSTATSD_URL");
  return shared != nullptr ? shared : "";
}

std::vector<std::string> tags_of(const Options& options) {
  std::vector<std::string> tags;
  if (!options.service.empty()) tags.push_back("service:" + options.service);
  if (!options.environment.empty()) tags.push_back("env:" + options.environment);
  if (!options.service_version.empty()) tags.push_back("version:" + options.service_version);
  return tags;
}

std::uint64_t restarts(const Summary& summary) {
  return std::accumulate(summary.worker_ends.begin(), summary.worker_ends.end(), std::uint64_t{0});
}

PeriodFacts facts_of(const Options& options, const Summary& before, const Summary& after) {
  PeriodFacts facts;
  facts.worker_restarts = restarts(after) - restarts(before);
  facts.resident_bytes = resident_bytes();
  facts.unwinding_time = after.collecting_cpu - before.collecting_cpu;
  // The period that closes now has yet to be named: this is about the ones before it.
  const bool was_any_named = after.sent + after.failed > before.sent + before.failed;
  if (was_any_named) facts.symbolizing_time = after.exported.naming_cpu - before.exported.naming_cpu;
  if (!options.events.empty() && options.events.front().is_clock)
    facts.sampling_rate_hz =
        1e9 / static_cast<double>(options.events.front().sample_value()) / after.slow_down;
  return facts;
}

}  // namespace

std::function<void(const Summary&, const Summary&)> metrics_reporter(const Options& options,
                                                                     const Journal& journal) {
  const std::string address = server_address(options);
  if (address.empty()) return {};
  auto client = std::make_shared<std::optional<StatsdClient>>();
  return [=, is_refused = false](const Summary& before, const Summary& after) mutable {
    if (!*client && !is_refused) {
      auto opened = StatsdClient::open(address, tags_of(options));
      is_refused = !opened;
      if (is_refused) journal.say(opened.error());
      if (!is_refused) client->emplace(std::move(opened).value());
    }
    if (!*client) return;
    send_self_metrics(**client, self_metrics(before, after, facts_of(options, before, after)));
    if (auto error = (*client)->take_error()) journal.say(*error);
  };
}

}  // namespace ddprof
