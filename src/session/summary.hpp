#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/frame.hpp"
#include "base/ids.hpp"
#include "collect/collector.hpp"
#include "session/continuity.hpp"
#include "session/finisher.hpp"

namespace ddprof {

// What a run did and what it missed. The closing lines that a user reads are made from this alone.
struct Summary {
  Nanoseconds duration{};
  Nanoseconds looked_at{};       // the time that profiles cover: without pauses, and up to the last one
  bool has_pauses = false;       // only a part of every period is looked at
  Nanoseconds collecting_cpu{};  // own CPU time to read, unwind and add up samples; of this worker
  CollectorCounters collector;
  std::uint64_t stacks = 0;                // samples that were unwound
  std::uint64_t contexts = 0;              // samples with what their thread told of itself
  std::uint64_t contexts_over_budget = 0;  // samples that lost it: too many different ones in a period
  std::map<std::pair<StopReason, std::string>, std::uint64_t> stopped;  // by reason and module
  std::map<Loss, std::int64_t> losses;                                  // CPU time without a sample
  std::optional<std::int64_t> exact_cpu;                                // what the kernel charged
  std::int64_t sampled_cpu = 0;
  ProcessCount excluded;    // by --include and --exclude
  ProcessCount over_limit;  // of --maximum-pids
  std::string engine;
  std::string kernel_need;  // what frames of the kernel would need; empty: they are there
  std::vector<std::string> notices;
  Nanoseconds own_cpu{};
  std::uint64_t own_memory_bytes = 0;  // highest resident size
  std::string output;
  Finisher::Outcome outcome;
  std::uint32_t slow_down = 1;  // one of so many samples is taken, to stay within --max-cpu
  std::array<std::uint32_t, kWorkerEnds> worker_ends{};  // workers of the profiler that were replaced
  WorkerEnd ending = WorkerEnd::none;                    // why this one ends before the run does
};

// What the profiler cost and what happened to it, a line each, for the profile.
std::vector<std::string> self_report(const Summary& summary);

// One more stack that did not reach its root; `file` is where it ended, null when nobody knows.
void count_stop(Summary& summary, StopReason reason, const CodeFile* file);

// CPU time and peak memory of the calling process, into the summary.
void measure_self(Summary& summary);

// "8,412 samples, 0 lost, 23 stacks truncated (0.3 %: no unwind info in libfoo.so)"
std::string closing_line(const Summary& summary);
// For a log, in one line: how long, how much, what was delivered where, what it cost.
std::string end_line(const Summary& summary);
// The closing line and what stands behind it, one line each.
std::string render_summary(const Summary& summary);

// 1234567 -> "1,234,567"
std::string with_thousands(std::uint64_t number);

}  // namespace ddprof
