#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/build_id.hpp"
#include "base/ids.hpp"
#include "base/registers.hpp"
#include "base/result.hpp"
#include "base/thread_variable.hpp"

namespace ddprof {

// What every engine reports, in time order. Spans and string_views point into the engine's buffers and are
// valid only while the event is being handled. Times are CLOCK_MONOTONIC.

struct SampleEvent {
  Pid pid{};
  Tid tid{};
  Nanoseconds time{};
  std::uint32_t cpu = 0;
  std::uint32_t event = 0;    // index into the configured events
  std::int64_t value = 0;     // what this sample stands for: nanoseconds for clocks, occurrences for others
  std::uint64_t address = 0;  // instruction pointer as the kernel reported it
  bool in_kernel = false;
  bool is_estimate = false;  // taken by a per-CPU event: unbiased, but only exact_total() knows the exact sum
  bool has_registers = false;  // false: the kernel had no 64-bit user registers to give
  Registers registers{};
  std::span<const std::byte> stack{};  // copy of user memory starting at registers.sp
  std::uint32_t stack_requested = 0;   // how many bytes were asked for; stack.size() below it means that
                                       // the stack mapping ended there
  std::span<const std::uint64_t> kernel_chain{};  // leaf first, no context markers
  std::span<const std::byte> thread_context{};    // the record that the thread had published; empty: none
};

struct MapEvent {
  Pid pid{};
  Tid tid{};
  Nanoseconds time{};
  Address start{};
  std::uint64_t length = 0;
  std::uint64_t file_offset = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  BuildId build_id{};  // empty unless the kernel put it in the record; then device and inode are 0
  bool is_executable = true;
  std::string_view path{};
};

struct ForkEvent {
  Pid pid{};
  Pid parent_pid{};
  Tid tid{};
  Tid parent_tid{};
  Nanoseconds time{};
};

struct CommEvent {
  Pid pid{};
  Tid tid{};
  Nanoseconds time{};
  bool is_exec = false;
  std::string_view comm{};
};

struct ExitEvent {
  Pid pid{};
  Tid tid{};
  Nanoseconds time{};
};

// The exact value of the event for a task that has ended (PERF_RECORD_READ of inherit_stat). Comes after its
// ExitEvent, once per CPU that the event was opened on; the values add up.
struct TaskTotalEvent {
  Pid pid{};
  Tid tid{};
  std::uint32_t event = 0;
  std::int64_t value = 0;
};

// The process lives on, but the kernel has taken its events away, as it does when a program is executed that
// runs as another user (set-user-ID, set-group-ID, file capabilities) or that its user may not read. Comes
// instead of its ExitEvent, and nothing more comes of it.
struct DetachedEvent {
  Pid pid{};
  Nanoseconds time{};
};

struct LostEvent {
  Tid tid{};  // who was running when the kernel could write again
  std::uint64_t records = 0;
};

struct ThrottleEvent {
  Nanoseconds time{};
  bool is_start = true;
};

using CollectorEvent = std::variant<SampleEvent, MapEvent, ForkEvent, CommEvent, ExitEvent, TaskTotalEvent,
                                    DetachedEvent, LostEvent, ThrottleEvent>;
using EventHandler = std::function<void(const CollectorEvent&)>;

struct CollectorCounters {
  std::uint64_t samples = 0;
  std::uint64_t lost_records = 0;  // the ring was full
  std::uint64_t throttled = 0;
  std::uint64_t filtered_samples = 0;   // per-CPU mode: samples of foreign processes, dropped
  std::uint64_t thinned_samples = 0;    // left out on purpose: others stand for them
  std::uint64_t malformed_records = 0;  // bytes in a ring that made no sense
  std::uint64_t wakeups = 0;
  std::uint64_t lost_contexts = 0;  // of threads: their ring was full
};

class Collector {
 public:
  virtual ~Collector() = default;

  // Waits up to `timeout` for records, then hands over everything that is old enough to be in final order.
  virtual Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) = 0;
  // Hands over everything that is left; nothing newer can arrive.
  virtual Result<void> drain(const EventHandler& handle) = 0;
  // Asks for samples to be handed over as soon as they are taken, at the price of a wake-up for each: deep
  // stacks are completed from the target's memory, which must not have changed by then.
  virtual void deliver_at_once() {}
  // Takes one sample for every `factor` that were asked for; each stands for so many more.
  virtual void slow_down(std::uint32_t factor) { (void)factor; }
  // Stops sampling and counting, and hands over what was sampled until then. Tasks that come and go, and what
  // they map, are told all the same. A collector that is paused already stays so.
  virtual Result<void> pause(const EventHandler& handle) = 0;
  virtual Result<void> resume() = 0;
  // Since when it has been paused, perhaps by another worker; none: it samples.
  [[nodiscard]] virtual std::optional<Nanoseconds> paused_since() const = 0;
  // Whether samples can come with what their threads publish, and where the threads of a process do that.
  // False: there is no room for one more process. Asked for Kind::none it forgets the process.
  [[nodiscard]] virtual bool reads_thread_contexts() const { return false; }
  virtual bool read_thread_contexts(Pid pid, const ThreadVariable& variable) {
    (void)pid, (void)variable;
    return false;
  }
  // Exact value of event `event` over all tasks followed so far, living ones included; none if unknown (-g).
  virtual std::optional<std::int64_t> exact_total(std::uint32_t event) = 0;
  // The processes that are followed now. Records tell of later ones. None for the whole host.
  [[nodiscard]] virtual std::vector<Pid> processes() const { return {}; }
  // True once no followed task can produce samples any more (all have exited).
  virtual bool is_finished() = 0;
  [[nodiscard]] virtual CollectorCounters counters() const = 0;
  // One phrase for the summary: "perf events per task, 2 CPUs, rings of 512 KiB".
  [[nodiscard]] virtual std::string describe() const = 0;
  // Things worth telling the user once: a ring that had to shrink, an event that needs privileges.
  [[nodiscard]] virtual std::vector<std::string> notices() const = 0;
};

}  // namespace ddprof
