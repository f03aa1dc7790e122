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
#include "base/frame.hpp"
#include "base/ids.hpp"
#include "base/registers.hpp"
#include "base/result.hpp"
#include "base/thread_variable.hpp"
#include "base/unique_fd.hpp"

struct ddprof_unwind_rule;

namespace ddprof {

class ModuleMap;
class RuleDictionary;

// What every engine reports, in time order. Spans and string_views point into the engine's buffers and are
// valid only while the event is being handled. Times are CLOCK_MONOTONIC.

// What the value of a sample is.
enum class SampleBasis : std::uint8_t {
  own_period,  // so much of its own task
  cpu_period,  // of a per-CPU event: unbiased, but only exact_total() knows the exact sum
  ticks,       // of short tasks: chosen at random among ticks, whose exact sum TickEvents tell
};

struct SampleEvent {
  Pid pid{};
  Tid tid{};
  Nanoseconds time{};
  std::uint32_t cpu = 0;
  std::uint32_t event = 0;    // index into the configured events
  std::int64_t value = 0;     // what this sample stands for: nanoseconds for clocks, occurrences for others
  std::int64_t count = 1;     // how many of its kind: allocations, of which `value` is the sum of sizes
  std::uint64_t address = 0;  // instruction pointer as the kernel reported it
  bool in_kernel = false;
  SampleBasis basis = SampleBasis::own_period;
  bool has_registers = false;  // false: the kernel had no user registers to give
  bool is_32_bit = false;      // i386 code, and its registers
  Registers registers{};
  std::span<const std::byte> stack{};  // copy of user memory starting at registers.sp
  std::uint32_t stack_requested = 0;   // how many bytes were asked for; stack.size() below it means that
                                       // the stack mapping ended there
  std::span<const std::uint64_t> kernel_chain{};  // leaf first, no context markers
  // Run-time addresses, leaf first, callers by their return addresses, of an engine that unwinds itself.
  // Empty: the stack is to be unwound from registers and bytes.
  std::span<const std::uint64_t> user_chain{};
  StopReason user_chain_end = StopReason::complete;
  std::span<const std::byte> thread_context{};  // the record that the thread had published; empty: none
  bool starts_in_library = false;  // the innermost frames are those of the engine's library in the target
  std::uint64_t stack_id = 0;      // by which a LiveHeap tells of it again; 0: it does not
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

// CPU time of a thread that samples of SampleBasis::ticks stand for together, its own or those of others.
struct TickEvent {
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
                                    DetachedEvent, LostEvent, ThrottleEvent, TickEvent>;
using EventHandler = std::function<void(const CollectorEvent&)>;

// Of allocations. Bytes are estimates.
struct HeapCounters {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;  // the ring was full
  std::uint64_t lost_bytes = 0;
  std::uint64_t untracked = 0;  // there were too many live ones
  std::uint64_t untracked_bytes = 0;
  std::uint64_t nested = 0;    // in signal handlers, while another one was taken
  std::uint64_t refused = 0;   // processes: there was no room for one more
  std::uint64_t limited = 0;   // processes that have little address space, and were left alone
  std::uint64_t attached = 0;  // processes whose allocations are sampled
};

struct CollectorCounters {
  std::uint64_t samples = 0;
  std::uint64_t lost_records = 0;  // the ring was full
  std::uint64_t throttled = 0;
  std::uint64_t filtered_samples = 0;   // per-CPU mode: samples of foreign processes, dropped
  std::uint64_t thinned_samples = 0;    // left out on purpose: others stand for them
  std::uint64_t malformed_records = 0;  // bytes in a ring that made no sense
  std::uint64_t wakeups = 0;
  std::uint64_t lost_contexts = 0;  // of threads: their ring was full
  HeapCounters heap;
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

// What is still allocated of what was sampled.
class LiveHeap {
 public:
  struct Block {
    Pid pid{};
    std::uint64_t stack_id = 0;         // of the sample of its allocation; 0: that was lost
    std::int64_t bytes = 0, count = 0;  // that it stands for
    Nanoseconds since{};
  };

  virtual ~LiveHeap() = default;
  virtual void for_each_block(const std::function<void(const Block&)>& take) const = 0;
  // Those of processes that have ended are told once; those of one, whose end is the end of all, until then.
  virtual void forget_ended(Pid except) = 0;
  // The process has become another program: its blocks are gone.
  virtual void forget_blocks(Pid pid, Nanoseconds time) = 0;
  // For the next worker: the stack of a sample, as run-time addresses; and what an earlier one has kept.
  // Empty: nothing.
  virtual void keep_stack(Pid pid, std::uint64_t stack_id, std::span<const std::uint64_t> addresses) = 0;
  virtual void forget_stack(Pid pid, std::uint64_t stack_id) = 0;
  [[nodiscard]] virtual std::span<const std::uint64_t> find_stack(Pid pid, std::uint64_t stack_id) const = 0;
};

// An engine whose part in the target walks stacks itself, by unwind tables that are published to it.
class TableReader {
 public:
  virtual ~TableReader() = default;
  // Rules that are published already. A dictionary has to begin with them.
  [[nodiscard]] virtual std::span<const ddprof_unwind_rule> published_rules() const = 0;
  [[nodiscard]] virtual std::vector<Pid> processes() const = 0;
  virtual void publish(Pid pid, const ModuleMap& modules, const RuleDictionary& rules) = 0;
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
  // How long it may be left alone.
  [[nodiscard]] virtual std::chrono::milliseconds longest_wait() const { return std::chrono::hours(1); }
  // Variables that a target has to have when it is executed, "NAME=VALUE".
  [[nodiscard]] virtual std::vector<std::string> target_environment() const { return {}; }
  // Null where it has not the ability. Each is the collector itself.
  virtual Pausable* pausable() { return nullptr; }
  virtual RateControl* rate_control() { return nullptr; }
  virtual ThreadContextSource* thread_contexts() { return nullptr; }
  virtual Handover* handover() { return nullptr; }
  virtual LiveHeap* live_heap() { return nullptr; }
  virtual TableReader* table_reader() { return nullptr; }
};

}  // namespace ddprof
