#include "session/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Of what a user reads at the end, the lines.
std::vector<std::string> lines_of(const Summary& summary) {
  std::vector<std::string> lines;
  std::string text = render_summary(summary);
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
  return lines;
}

Summary quiet_summary() {
  Summary summary;
  summary.duration = summary.observed = std::chrono::seconds(2);
  summary.stacks = 198;
  summary.sampled_cpu = 2'000'000'000;
  summary.engine = "perf events";
  summary.own = {std::chrono::milliseconds(20), 15U << 20U};
  summary.sent = 1;
  summary.output = "out.pprof";
  return summary;
}

TEST(Summary, TheClosingLineSaysWhatWasMissed) {
  Summary summary;
  summary.stacks = 8412;
  summary.stopped[{StopReason::no_unwind_info, "libfoo.so"}] = 23;
  EXPECT_EQ(closing_line(summary),
            "8,412 samples, 0 lost, 23 stacks truncated (0.3 %: no unwind info in libfoo.so)");
  summary.stopped.clear();
  EXPECT_EQ(closing_line(summary), "8,412 samples, 0 lost, 0 stacks truncated");
}

TEST(Summary, TheEndOfALogIsOneLine) {
  Summary summary;
  summary.duration = std::chrono::seconds(61);
  summary.stacks = 1234;
  summary.output = "http://agent:8126";
  summary.sent = 3;
  summary.delivery.waiting = 2;
  summary.failed = 1;
  summary.exported.first_error = make_error(ErrorCode::failed, "the disk is full");
  summary.worker_ends[static_cast<std::size_t>(WorkerEnd::scheduled)] = 1;
  summary.exact_cpu = 5'950'000'000;
  summary.own.cpu = std::chrono::milliseconds(86);
  summary.own.memory_bytes = 20 << 20U;
  EXPECT_EQ(
      end_line(summary),
      "the end, after 61.0 s: 1,234 samples, 0 lost, 0 stacks truncated; 3 profiles for http://agent:8126; "
      "of the profiles, 2 wait on the disk, 1 failed: the disk is full; worker replaced 1 times: 1 as "
      "scheduled; target 5.950 s of CPU; ddprof 0.086 s of CPU, 20.0 MiB");
}

TEST(Summary, NumbersHaveThousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
}

TEST(Summary, ARunWithoutTroubleIsShort) {
  EXPECT_THAT(lines_of(quiet_summary()),
              ElementsAre("ddprof: 198 samples, 0 lost, 0 stacks truncated",
                          "  target     2.000 s of CPU sampled in 2.000 s", "  engine     perf events",
                          "  ddprof     0.020 s of CPU, 15.0 MiB", "  profile    out.pprof"));
}

// Each thing that happened is a line; without it there is none (see above).
TEST(Summary, EverythingThatHappenedHasALine) {
  const auto nth = [](WorkerEnd end) { return static_cast<std::size_t>(end); };
  const struct {
    std::function<void(Summary&)> happens;
    std::string line;
  } cases[] = {
      {[](Summary& run) { run.collector.throttled = 1; }, "  throttled  1 times by the kernel"},
      {[](Summary& run) { run.collector.filtered_samples = 1; }, "  filtered   1 samples of other processes"},
      {[](Summary& run) {
         run.excluded = {1, 2, 3'000'000'000};
       },
       "  filtered   2 samples (3.000 s of CPU) of 1 processes, by --include and --exclude"},
      {[](Summary& run) {
         run.over_limit = {0, 1, 4'000'000'000};
       },
       "  too many   1 samples (4.000 s of CPU) of processes beyond --maximum-pids have no stacks"},
      {[](Summary& run) { run.contexts = 1; }, "  traces     1 samples with what their thread was doing"},
      {[](Summary& run) {
         run.contexts = 5;
         run.collector.lost_contexts = 1;
         run.contexts_over_budget = 1;
       },
       "  traces     5 samples with what their thread was doing, 1 lost: their ring was full, 1 left out: "
       "too "
       "many different ones"},
      {[](Summary& run) { run.collector.malformed_records = 1; }, "  malformed  1 records"},
      {[](Summary& run) { run.kernel_need = "CAP_PERFMON"; },
       "  engine     perf events; user frames only: kernel frames need CAP_PERFMON"},
      {[](Summary& run) { run.notices = {"the disk is slow"}; }, "  notice     the disk is slow"},
      {[](Summary& run) { run.slow_down = 2; },
       "  slowed     one of 2 samples is taken, to stay within --max-cpu"},
      {[](Summary& run) { run.dropped = 1; }, "  dropped    1 profile: the destination was too slow"},
      {[](Summary& run) { run.delivery.waiting = 1; },
       "  waiting    1 profile, on the disk until they can be sent"},
      {[](Summary& run) { run.delivery.dropped = 2; },
       "  dropped    2 profiles that had waited: no room, too old, or refused in the end"},
      {[nth](Summary& run) {
         run.worker_ends[nth(WorkerEnd::scheduled)] = 1;
         run.worker_ends[nth(WorkerEnd::crashed)] = 2;
       },
       "  worker     replaced 3 times: 1 as scheduled, 2 crashed"},
      {[nth](Summary& run) { run.worker_ends[nth(WorkerEnd::hung)] = 1; },
       "  worker     replaced 1 times: 1 hung"},
      {[](Summary& run) {
         run.has_pauses = true;
         run.observed = std::chrono::seconds(1);
       },
       "  looked at  1.000 s of 2.000 s"},
      {[](Summary& run) {
         run.has_pauses = true;
         run.observed = std::chrono::seconds(1);
       },
       "  target     2.000 s of CPU sampled in 1.000 s"},
  };
  for (const auto& [happens, line] : cases) {
    Summary summary = quiet_summary();
    happens(summary);
    EXPECT_THAT(lines_of(summary), IsSupersetOf({line}));
  }
}

TEST(Summary, SaysWhatFailedAndWhatToTry) {
  Summary summary = quiet_summary();
  summary.sent = 0;
  summary.failed = 2;
  summary.exported.first_error = make_error(ErrorCode::failed, "the disk is full");
  EXPECT_THAT(render_summary(summary), HasSubstr("  failed     2 profiles: the disk is full\n"));
  EXPECT_THAT(render_summary(summary), Not(HasSubstr("try: ")));
  EXPECT_THAT(render_summary(summary), Not(HasSubstr("out.pprof"))) << "nothing is there";
  summary.exported.first_error->hint = "another disk";
  EXPECT_THAT(render_summary(summary), HasSubstr("             try: another disk\n"));
}

TEST(Summary, TellsWhatNoSampleStandsForFromAThousandthOn) {
  Summary summary = quiet_summary();
  summary.exact_cpu = 2'000'000'000;
  summary.sampled_cpu = 1'900'000'000;
  summary.losses = {{Loss::unsampled, 98'000'000}, {Loss::lost, 2'000'000}, {Loss::kernel, 1'999'999}};
  const std::string text = render_summary(summary);
  EXPECT_THAT(text, HasSubstr("  target     2.000 s of CPU in 2.000 s, 94.9 % of it sampled\n"));
  EXPECT_THAT(text, HasSubstr("             0.098 s (4.9 %) unsampled: shorter than a sampling period\n"));
  EXPECT_THAT(text, HasSubstr("             0.002 s (0.1 %) lost: ring buffer full\n"));
  EXPECT_THAT(text, Not(HasSubstr("not permitted")));
  // Samples that stand for more than was charged are no more than all of it; fewer are as few as they are.
  summary.sampled_cpu = 3'000'000'000;
  summary.losses.clear();
  EXPECT_THAT(render_summary(summary), HasSubstr("100.0 % of it sampled"));
  summary.sampled_cpu = 1'000'000'000;
  EXPECT_THAT(render_summary(summary), HasSubstr("50.0 % of it sampled"));
  summary.exact_cpu = 0;
  EXPECT_THAT(render_summary(summary), HasSubstr("0.000 s of CPU in 2.000 s, 0.0 % of it sampled"));
}

TEST(Summary, LostRecordsAreNotAllSamples) {
  Summary summary;
  summary.stacks = 990;
  summary.collector.lost_records = 500;
  EXPECT_THAT(render_summary(summary), HasSubstr("990 samples, 500 lost")) << "the exact time is not known";
  summary.exact_cpu = 10'000'000'000;
  summary.sampled_cpu = 9'900'000'000;
  EXPECT_THAT(render_summary(summary), HasSubstr("990 samples, 0 lost"));
  summary.losses = {{Loss::lost, 55'000'000}};
  EXPECT_THAT(render_summary(summary), HasSubstr("990 samples, 6 lost"));
  EXPECT_THAT(render_summary(summary),
              HasSubstr("  records    494 lost that tell of mappings and tasks: ring buffer full\n"));
  summary.collector.lost_records = 5;
  EXPECT_THAT(render_summary(summary), HasSubstr("990 samples, 5 lost"));
  EXPECT_THAT(render_summary(summary), Not(HasSubstr("records ")));
}

TEST(Summary, ReasonsAreAddedUpByTheirTextAndTheMostFrequentIsFirst) {
  Summary summary = quiet_summary();
  summary.stacks = 1000;
  summary.stopped = {{{StopReason::truncated_copy, "a.so"}, 3},
                     {{StopReason::truncated_copy, "b.so"}, 4},
                     {{StopReason::unknown_code, ""}, 9}};
  EXPECT_EQ(closing_line(summary), "1,000 samples, 0 lost, 16 stacks truncated (1.6 %: unknown code, …)");
  EXPECT_THAT(lines_of(summary),
              IsSupersetOf({"  truncated  9: unknown code", "  truncated  7: stack deeper than the copy"}));
  summary.stopped = {{{StopReason::unknown_code, ""}, 9}};
  EXPECT_EQ(closing_line(summary), "1,000 samples, 0 lost, 9 stacks truncated (0.9 %: unknown code)");
  EXPECT_THAT(render_summary(summary), Not(HasSubstr("  truncated"))) << "the first line says it";
}

TEST(Summary, NamesThreeModulesOfEachLevel) {
  Summary summary = quiet_summary();
  const auto add = [&](const char* path, ModuleNaming::Level level) {
    summary.exported.modules.push_back({.path = path, .level = level});
  };
  add("/bin/shop", ModuleNaming::Level::lines);
  for (const char* path : {"/lib/a.so", "/lib/b.so", "/lib/c.so"}) add(path, ModuleNaming::Level::symbols);
  EXPECT_THAT(render_summary(summary),
              HasSubstr("  names      lines in 1 (shop); only symbols in 3 (a.so, b.so, c.so)\n"));
  add("d.so", ModuleNaming::Level::symbols);
  add("/lib/e.so", ModuleNaming::Level::none);
  EXPECT_THAT(render_summary(summary), HasSubstr("  names      lines in 1 (shop); only symbols in 4 (a.so, "
                                                 "b.so, c.so, …); no names in 1 (e.so)\n"));
  EXPECT_THAT(render_summary(summary), Not(HasSubstr("notice")));
  summary.exported.modules[0].unread = 1;
  summary.exported.modules[1].problem = "damaged";
  EXPECT_THAT(
      lines_of(summary),
      IsSupersetOf({"  notice     /bin/shop: no names; 1 addresses without lines, which came too late",
                    "  notice     /lib/a.so: no names; damaged"}));
}

TEST(Summary, TheProfileSaysWhatItCostAndWhatHappened) {
  Summary summary = quiet_summary();
  EXPECT_THAT(self_report(summary), ElementsAre("profiler: 0.020 s of CPU, 15.0 MiB"));
  summary.exact_cpu = 1'000'000'000;
  summary.slow_down = 4;
  summary.contexts = 1000;
  summary.collector.lost_contexts = 1;
  summary.worker_ends[static_cast<std::size_t>(WorkerEnd::memory)] = 1;
  summary.delivery.dropped = summary.dropped = summary.failed = 1;
  EXPECT_THAT(
      self_report(summary),
      ElementsAre("profiler: 0.020 s of CPU, 15.0 MiB", "target: 1.000 s of CPU",
                  "sampling slowed down 4 times to stay within --max-cpu",
                  "traces: 1,000 samples, 1 lost: their ring was full",
                  "worker: replaced 1 times: 1 for its memory",
                  "export: of the profiles, 1 had to be dropped from there, 1 were dropped because the "
                  "destination was too slow, 1 failed"));
}

TEST(Summary, PlacesOfStacksThatEndEarlyAreLimited) {
  Summary summary;
  CodeFile file;
  for (int number = 0; number < 1025; ++number) {
    file.path = "/lib/" + std::to_string(number);
    count_stop(summary, StopReason::no_unwind_info, &file);
  }
  EXPECT_EQ(summary.stopped.size(), 1025U);  // 1,024 and one for all others
  EXPECT_EQ((summary.stopped[{StopReason::no_unwind_info, ""}]), 1U);
  file.path = "/lib/7";
  count_stop(summary, StopReason::no_unwind_info, &file);
  EXPECT_EQ((summary.stopped[{StopReason::no_unwind_info, "7"}]), 2U) << "one that is known still counts";
  count_stop(summary, StopReason::unknown_code, nullptr);
  EXPECT_EQ((summary.stopped[{StopReason::unknown_code, ""}]), 1U);
}

TEST(OwnUsage, IsWhatThisProcessTook) {
  const OwnUsage before = read_own_usage();
  volatile std::uint64_t number = 0;
  while (read_own_usage().cpu < before.cpu + std::chrono::milliseconds(5)) number = number + 1;
  EXPECT_GT(before.memory_bytes, 1U << 20U);
  EXPECT_LT(before.memory_bytes, std::uint64_t{1} << 40U);
}

}  // namespace
}  // namespace ddprof
