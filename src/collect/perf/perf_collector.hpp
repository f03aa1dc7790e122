#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "collect/perf/custody.hpp"
#include "collect/target.hpp"

namespace ddprof {

// When per-CPU events (root, CAP_PERFMON or perf_event_paranoid <= 0) stand in for inherited per-task events.
enum class PerCpuUse : std::uint8_t {
  when_better,  // fork-heavy programs, and -p of more threads than there are descriptors
  never,
  always,  // from the start
};

struct PerfOptions {
  std::vector<EventSpec> events;  // kind allocation is skipped: it belongs to the heap engine
  std::uint32_t stack_bytes = 0;  // per sample, unless the event says otherwise; 0: as much as fits the rings
  bool want_kernel = true;        // sample in the kernel and report its frames, where permitted
  PerCpuUse per_cpu = PerCpuUse::when_better;
  bool has_pauses = false;  // pause() will be called: the side band gets an event of its own
  int wake_fd = -1;  // borrowed: collect() returns early once this is readable (a signal has asked to stop)
};

// How much stack is copied with each sample of these events, on this machine, where nothing is chosen.
Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>& events);

enum class PerfMode : std::uint8_t { per_task, per_cpu };

// Samples with perf_event_open. The calling thread must outlive the collector: the rings hang on a silent
// event of that thread, so that they do not depend on which target thread lives longest.
//
// The process that opens it may fork others to use it, one after the other. It then calls nothing but
// follow(), reclaim(), is_finished() and exact_total() itself.
class PerfCollector : public Collector {
 public:
  static Result<std::unique_ptr<PerfCollector>> open(const Target& target, const PerfOptions& options);

  // In the forked process, before anything else: goes on where the last one stopped.
  virtual Result<void> take_over(int wake_fd, NoteSender sender) = 0;
  // In the process that forked it: what it noted, and that it is gone.
  virtual void follow(const CustodyNote& note, UniqueFd fd) = 0;
  virtual void reclaim() = 0;

  // Processes of the target that could not be attached to, and why; the others are sampled.
  [[nodiscard]] virtual const std::vector<Error>& refused() const = 0;

  [[nodiscard]] virtual PerfMode mode() const = 0;
  // Whether samples taken in the kernel are delivered; if not, ticks that hit the kernel give no sample.
  [[nodiscard]] virtual bool samples_kernel() const = 0;
};

}  // namespace ddprof
