#include "session/self_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "base/read_file.hpp"
#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, double> by_name(const std::vector<SelfMetric>& metrics) {
  std::map<std::string, double> values;
  for (const SelfMetric& metric : metrics)
    EXPECT_TRUE(values.emplace(metric.name, metric.value).second) << metric.name << " is there twice";
  return values;
}

// A run after 60 s, and after 120 s.
Summary first_minute() {
  Summary summary;
  summary.duration = summary.observed = 60s;
  summary.collector = {.samples = 5000, .lost_records = 10, .throttled = 1};
  summary.stacks = 4990;
  summary.stopped[{StopReason::truncated_copy, ""}] = 7;
  summary.exact_cpu = 90'000'000'000;
  summary.own.cpu = 600ms;
  summary.own.memory_bytes = 20 << 20;
  summary.sent = 1;
  return summary;
}

Summary second_minute() {
  Summary summary = first_minute();
  summary.duration = summary.observed = 120s;
  summary.collector.samples += 3000;
  summary.collector.lost_records += 2;
  summary.stacks += 2998;
  summary.stopped[{StopReason::truncated_copy, ""}] += 1;
  summary.stopped[{StopReason::depth_limit, "deep"}] = 4;
  summary.stopped[{StopReason::no_unwind_info, "libfoo.so"}] = 5;
  summary.stopped[{StopReason::bad_memory, "libbar.so"}] = 6;
  summary.exact_cpu = 120'000'000'000;
  summary.losses[Loss::unsampled] = 3'000'000'000;
  summary.own.cpu = 900ms;
  summary.own.memory_bytes = 24 << 20;
  summary.sent = 2;
  summary.dropped = 3;
  summary.failed = 4;
  return summary;
}

TEST(SelfMetrics, TellWhatHappenedInThePeriodAlone) {
  auto metrics = by_name(self_metrics(first_minute(), second_minute(), {}));
  EXPECT_EQ(metrics.at("event.count"), 3000);
  EXPECT_EQ(metrics.at("event.lost"), 2);
  EXPECT_EQ(metrics.at("event.throttled"), 0);
  EXPECT_EQ(metrics.at("sample.count"), 2998);
  EXPECT_EQ(metrics.at("unwind.stack.truncated_input"), 1);
  EXPECT_EQ(metrics.at("unwind.stack.truncated_output"), 4);
  EXPECT_EQ(metrics.at("unwind.errors"), 11);
  EXPECT_EQ(metrics.at("unwind.stack.incomplete"), 16);
  EXPECT_EQ(metrics.at("profile.duration_ms"), 60'000);
  EXPECT_DOUBLE_EQ(metrics.at("profiler.cpu_usage.millicores"), 5);          // 0.3 s in 60 s
  EXPECT_DOUBLE_EQ(metrics.at("target_process.cpu_usage.millicores"), 500);  // 30 s in 60 s
  EXPECT_DOUBLE_EQ(metrics.at("target_process.cpu_unsampled.millicores"), 50);
  EXPECT_EQ(metrics.at("profiler.peak_rss"), 24 << 20);
  EXPECT_EQ(metrics.at("export.sent"), 1);
  EXPECT_EQ(metrics.at("export.dropped"), 3);
  EXPECT_EQ(metrics.at("export.failed"), 4);
  EXPECT_EQ(metrics.at("worker.restarts"), 0);
}

TEST(SelfMetrics, TheTargetIsMeasuredByTheTimeThatWasLookedAt) {
  Summary after = second_minute();
  after.observed = 75s;
  const auto metrics = by_name(self_metrics(first_minute(), after, {}));
  EXPECT_EQ(metrics.at("profile.duration_ms"), 15'000);
  EXPECT_DOUBLE_EQ(metrics.at("profiler.cpu_usage.millicores"), 5);           // 0.3 s in 60 s
  EXPECT_DOUBLE_EQ(metrics.at("target_process.cpu_usage.millicores"), 2000);  // 30 s in 15 s
}

TEST(SelfMetrics, LeaveOutWhatIsNotKnown) {
  const auto silent = by_name(self_metrics(first_minute(), second_minute(), {}));
  for (const char* name : {"profiler.rss", "sampling.rate_hz", "unwind.avg_time_ns", "symbols.time_ms"})
    EXPECT_FALSE(silent.contains(name)) << name;

  const PeriodFacts facts{.worker_restarts = 2,
                          .sampling_rate_hz = 49.5,
                          .resident_bytes = 1 << 20,
                          .unwinding_time = 2998us,
                          .symbolizing_time = 20ms};
  const auto told = by_name(self_metrics(first_minute(), second_minute(), facts));
  EXPECT_EQ(told.at("worker.restarts"), 2);
  EXPECT_EQ(told.at("sampling.rate_hz"), 49.5);
  EXPECT_EQ(told.at("profiler.rss"), 1 << 20);
  EXPECT_DOUBLE_EQ(told.at("unwind.avg_time_ns"), 1000);
  EXPECT_DOUBLE_EQ(told.at("symbols.time_ms"), 20);
}

TEST(SelfMetrics, AreAllDocumentedAndNothingElseIs) {
  const auto page = read_file(DDPROF_SOURCE_DIR "/docs/self_metrics.md");
  ASSERT_TRUE(page);
  const PeriodFacts all{
      .sampling_rate_hz = 1, .resident_bytes = 1, .unwinding_time = 1ns, .symbolizing_time = 1ns};
  const auto metrics = self_metrics(first_minute(), second_minute(), all);
  for (const SelfMetric& metric : metrics) {
    const char* kind = metric.kind == SelfMetric::Kind::gauge ? "gauge" : "count";
    EXPECT_THAT(*page, HasSubstr(fmt::format("\n| `{}` | {} |", metric.name, kind)));
  }
  const std::string rows = page->substr(page->find("| name | kind |"));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), static_cast<std::ptrdiff_t>(metrics.size()) + 2);
}

TEST(SelfMetrics, AFreshWorkerCountsFromZero) {
  Summary fresh;
  fresh.duration = fresh.observed = 30s;
  fresh.stacks = 100;
  fresh.sampled_cpu = 15'000'000'000;  // the whole host: nobody knows an exact sum
  for (const Summary& before : {Summary(), second_minute()}) {
    const auto metrics = by_name(self_metrics(before, fresh, {}));
    EXPECT_EQ(metrics.at("sample.count"), 100);
    EXPECT_EQ(metrics.at("profile.duration_ms"), 30'000);
    EXPECT_DOUBLE_EQ(metrics.at("target_process.cpu_usage.millicores"), 500);
  }
}

TEST(SelfMetrics, APeriodOfNoLengthHasNoShares) {
  const auto metrics = by_name(self_metrics(Summary(), Summary(), {.unwinding_time = 0ns}));
  EXPECT_EQ(metrics.at("profiler.cpu_usage.millicores"), 0);
  EXPECT_FALSE(metrics.contains("unwind.avg_time_ns"));
}

TEST(SelfMetrics, ArriveAsLinesWithTheirFullNames) {
  const ScratchFolder scratch;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, scratch.path("dsd").c_str(), sizeof name.sun_path - 1);
  const UniqueFd receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ASSERT_EQ(::bind(receiver.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);

  auto client = StatsdClient::open(scratch.path("dsd"), {"service:shop"});
  ASSERT_TRUE(client);
  send_self_metrics(*client, self_metrics(first_minute(), second_minute(), {.worker_restarts = 2}));
  std::array<char, 8192> bytes;
  const ssize_t size = ::recv(receiver.get(), bytes.data(), bytes.size(), 0);
  ASSERT_GT(size, 0) << "one datagram holds them all";
  const std::string datagram(bytes.data(), static_cast<std::size_t>(size));
  EXPECT_THAT(datagram, AllOf(HasSubstr("datadog.profiling.native.sample.count:2998|g|#service:shop\n"),
                              HasSubstr("datadog.profiling.native.worker.restarts:2|c|#service:shop"),
                              HasSubstr("datadog.profiling.native.export.failed:4|c|#service:shop\n"),
                              Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace ddprof
