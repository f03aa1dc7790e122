#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/event_spec.hpp"
#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

// For perf_event_open(2), in the place of a task or of a CPU.
inline constexpr std::int32_t kSelf = 0;
inline constexpr std::int32_t kAllTasks = -1;
inline constexpr std::int32_t kAnyCpu = -1;

// Attribute bits that not every supported kernel (4.15 and newer) takes. Found by trying, newest first.
struct AttrFeatures {
  bool build_id = true;   // Linux 5.12
  bool comm_exec = true;  // Linux 3.16; the last two guard against kernels with backports and gaps
  bool clockid = true;    // Linux 4.1

  friend bool operator==(const AttrFeatures&, const AttrFeatures&) = default;
};

// The features left after the newest one that is still on has been given up; none when nothing is left to
// drop.
std::optional<AttrFeatures> without_newest(AttrFeatures features);

struct AttrRequest {
  AttrFeatures features;
  std::uint64_t config = 0;       // EventSpec::config, or the id of the tracepoint
  std::uint32_t stack_bytes = 0;  // 0: no copy of the stack
  bool kernel = false;            // may look at the kernel
  bool side_band = false;         // carries mmap, comm, fork and exit; on one event of a task and CPU only
  bool enable_on_exec = false;
  bool has_children = true;  // inherited by processes that are forked too; false: by threads alone
};

// All are created disabled and report into a ring at the ring's watermark.
perf_event_attr task_sampling_attr(const EventSpec& spec,
                                   const AttrRequest& request);  // inherited, for one CPU
// Counts like the former and, of each task that ends, writes the exact value (PERF_RECORD_READ). Never into a
// ring with anything else in it: the kernel writes that record on the CPU where the task ends, into the ring
// of the CPU that the event is for, and two CPUs that write to one ring can leave it silent for good. Seen
// on 6.18: after some ten thousand ends of threads on two CPUs (PerfCollector.RingsSurviveAStormOfThreads).
perf_event_attr task_totals_attr(const EventSpec& spec, const AttrRequest& request);
// Samples like the first, with small copies of the stack, and starts when it is told to.
perf_event_attr task_ticks_attr(const EventSpec& spec, const AttrRequest& request);
perf_event_attr cpu_sampling_attr(const EventSpec& spec, const AttrRequest& request);  // all tasks of one CPU
perf_event_attr counting_attr(const EventSpec& spec, const AttrRequest& request);      // inherited, no ring
perf_event_attr ring_attr(const AttrFeatures& features,
                          std::uint32_t watermark_bytes);  // silent holder of a ring
EventSpec side_band_spec();  // an event that never fires, for when only mmap, comm, fork and exit are wanted

// Looks up events/GROUP/NAME/id below one of `roots` (tracefs, or its old place in debugfs).
Result<std::uint64_t> find_tracepoint_id(std::string_view group, std::string_view name,
                                         std::span<const std::filesystem::path> roots);
Result<std::uint64_t> find_tracepoint_id(std::string_view group, std::string_view name);

// perf_event_open(2) for a task (or -1: all) on a CPU (or -1: any); close-on-exec. `what` names the event in
// errors. Codes: permission_denied, not_found (no such task), exhausted (descriptors), unsupported (no such
// counter), invalid_argument (the kernel does not know an attribute).
Result<UniqueFd> open_perf_event(const perf_event_attr& attr, std::int32_t task, std::int32_t cpu,
                                 std::string_view what);

// The same for who wants to know how it fails.
struct PerfAttempt {
  UniqueFd event;  // open unless it failed
  std::optional<OpenFailure> failure;
};
PerfAttempt attempt_perf_event(const perf_event_attr& attr, std::int32_t task, std::int32_t cpu,
                               std::string_view what);

}  // namespace ddprof
