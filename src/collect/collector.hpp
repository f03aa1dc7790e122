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
#include "base/unique_fd.hpp"

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
  // Run-time addresses, leaf first, callers by their return addresses, of an engine that unwinds itself.
  // Empty: the stack is to be unwound from registers and bytes.
  std::span<const std::uint64_t> user_chain{};
  std::span<const std::byte> thread_context{};  // the record that the thread had published; empty: none
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

// What a collector follows, and what it could not have.
struct CollectorScope {
  std::vector<Pid> processes;  // that are followed now; records tell of later ones; none for the whole host
  std::vector<Error>
      refused;              // processes of the target that could not be attached to; the others are sampled
  std::string kernel_need;  // what samples in the kernel would need; empty: ticks that hit it give samples

  [[nodiscard]] bool samples_kernel() const { return kernel_need.empty(); }
};

// A system call that a worker needs to collect, beyond what every worker may do.
struct NeededCall {
  long number = 0;
  unsigned ioctl_type = 0;  // of ioctl: which kind of requests (_IOC_TYPE)
};

// Abilities that a collector may have beside collecting.

class Pausable {
 public:
  virtual ~Pausable() = default;
  // Stops sampling and counting, and hands over what was sampled until then. Tasks that come and go, and what
  // they map, are told all the same. A collector that is paused already stays so.
  virtual Result<void> pause(const EventHandler& handle) = 0;
  virtual Result<void> resume() = 0;
  // Since when it has been paused, perhaps by another worker; none: it samples.
  [[nodiscard]] virtual std::optional<Nanoseconds> paused_since() const = 0;
};

class RateControl {
 public:
  virtual ~RateControl() = default;
  // Takes one sample for every `factor` that were asked for; each stands for so many more.
  virtual void slow_down(std::uint32_t factor) = 0;
  // Asks for samples to be handed over as soon as they are taken, at the price of a wake-up for each: deep
  // stacks are completed from the target's memory, which must not have changed by then.
  virtual void deliver_at_once() = 0;
};

class ThreadContextSource {
 public:
  virtual ~ThreadContextSource() = default;
  // Samples of this process come with what its threads publish there. False: there is no room for one more
  // process. Asked for Kind::none it forgets the process.
  virtual bool read_thread_contexts(Pid pid, const ThreadVariable& variable) = 0;
};

// The process that opens a collector (the supervisor) may fork others to read it, one after the other
// (workers), and keeps the same descriptors. A worker sends a note of what it opens, closes and changes, so
// that its successor knows. What is in a note only the collector knows. The supervisor calls nothing but
// follow(), reclaim(), is_finished() and exact_total() itself.
class Handover {
 public:
  static constexpr std::size_t kMaxNoteBytes = 64;
  // `fd` is -1 unless the note is about one. It stays the caller's.
  using NoteSender = std::function<void(std::span<const std::byte> note, int fd)>;

  virtual ~Handover() = default;
  // In a worker, before anything else: goes on where the last one stopped. collect() returns early once
  // `wake_fd` is readable, which is borrowed.
  virtual Result<void> take_over(int wake_fd, NoteSender sender) = 0;
  // In the supervisor: a note of a worker, which parses what strangers wrote and may be made to say anything.
  virtual void follow(std::span<const std::byte> note, UniqueFd fd) = 0;
  // In the supervisor: the worker has ended.
  virtual void reclaim() = 0;
};

class Collector {
 public:
  virtual ~Collector() = default;

  // Waits up to `timeout` for records, then hands over everything that is old enough to be in final order.
  virtual Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) = 0;
  // Hands over everything that is left; nothing newer can arrive.
  virtual Result<void> drain(const EventHandler& handle) = 0;
  // Exact value of event `event` over all tasks followed so far, living ones included; none if unknown (-g).
  virtual std::optional<std::int64_t> exact_total(std::uint32_t event) = 0;
  // True once no followed task can produce samples any more (all have exited).
  virtual bool is_finished() = 0;
  [[nodiscard]] virtual CollectorCounters counters() const = 0;
  // One phrase for the summary: "perf events per task, 2 CPUs, rings of 512 KiB".
  [[nodiscard]] virtual std::string describe() const = 0;
  // Things worth telling the user once: a ring that had to shrink, an event that needs privileges.
  [[nodiscard]] virtual std::vector<std::string> notices() const = 0;

  [[nodiscard]] virtual CollectorScope scope() const { return {}; }
  [[nodiscard]] virtual std::vector<NeededCall> needed_calls() const { return {}; }
  // Null where it has not the ability. Each is the collector itself.
  virtual Pausable* pausable() { return nullptr; }
  virtual RateControl* rate_control() { return nullptr; }
  virtual ThreadContextSource* thread_contexts() { return nullptr; }
  virtual Handover* handover() { return nullptr; }
};

}  // namespace ddprof
