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
#include "base/result.hpp"
#include "session/continuity.hpp"
#include "session/namer.hpp"

namespace ddprof {

// What this process has cost so far.
struct OwnUsage {
  Nanoseconds cpu{};
  std::uint64_t memory_bytes = 0;  // highest resident size
};
OwnUsage read_own_usage();

// What has become of the profiles of this worker.
struct Exported {
  std::optional<Error> first_error;
  std::vector<ModuleNaming> modules;  // of the last period
  std::vector<std::string> hints;     // the latest
  Nanoseconds naming_cpu{};
  std::size_t queued = 0;  // now
};

// What a run did and what it missed. The closing lines that a user reads are made from this alone.
struct Summary : Counters {
  Nanoseconds duration{};
  Nanoseconds observed{};        // the time that profiles cover: without pauses, and up to the last one
  bool has_pauses = false;       // only a part of every period is sampled
  Nanoseconds collecting_cpu{};  // own CPU time to read, unwind and add up samples; of this worker
  std::map<std::pair<StopReason, std::string>, std::uint64_t> stopped;  // stacks by reason and module
  std::map<Loss, std::int64_t> losses;                                  // CPU time without a sample
  std::optional<std::int64_t> exact_cpu;                                // what the kernel charged
  std::int64_t sampled_cpu = 0;
  std::string engine;
  std::string kernel_need;  // what frames of the kernel would need; empty: they are there
  std::vector<std::string> notices;
  OwnUsage own;  // of all workers
  std::string output;
  Exported exported;
  std::uint32_t slow_down = 1;  // one of so many samples is taken, to stay within --max-cpu
  std::array<std::uint32_t, kWorkerEnds> worker_ends{};  // workers of the profiler that were replaced
  WorkerEnd ending = WorkerEnd::none;                    // why this one ends before the run does
};

// What the profiler cost and what happened to it, a line each, for the profile.
std::vector<std::string> self_report(const Summary& summary);

// One more stack that did not reach its root; `file` is where it ended, null when that is not known.
void count_stop(Summary& summary, StopReason reason, const CodeFile* file);

// "8,412 samples, 0 lost, 23 stacks truncated (0.3 %: no unwind info in libfoo.so)"
std::string closing_line(const Summary& summary);
// For a log, in one line: how long, how much, what was delivered where, what it cost.
std::string end_line(const Summary& summary);
// The closing line and what stands behind it, one line each.
std::string render_summary(const Summary& summary);

// 1234567 -> "1,234,567"
std::string with_thousands(std::uint64_t number);

}  // namespace ddprof
