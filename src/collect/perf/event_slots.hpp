#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/collector.hpp"
#include "collect/perf/ring_set.hpp"

namespace ddprof {

enum class SlotRole : std::uint8_t {
  task_sampling,  // inherited, one task and its descendants on one CPU
  task_totals,    // likewise, but only to tell the exact value of each task that ends
  cpu_sampling,   // all tasks of one CPU
  counting,       // inherited, one task and its descendants, all CPUs, no ring
  task_ticks,     // like task_sampling, but of short periods, and this worker's alone: FineSampling
};

// What a worker has done to the events that its supervisor holds too: see Handover.
struct EventNote {
  enum class Step : std::uint8_t {
    opened,            // with the descriptor; event, tid, position, role
    retired,           // role
    forgotten,         // role
    task_dropped,      // tid, position
    counting_started,  // all counting events
    mode_changed,      // from events of tasks to events of CPUs; time
    paused,            // nothing is sampled since `time`
    resumed,
    redirected,  // to rings of the worker's own, which end with it
  };
  Step step = Step::opened;
  SlotRole role = SlotRole::task_sampling;
  std::uint32_t event = 0;
  std::int32_t tid = 0;
  std::uint32_t position = 0;
  std::uint64_t time = 0;
};

static_assert(std::is_trivially_copyable_v<EventNote> && sizeof(EventNote) <= Handover::kMaxNoteBytes);

// `fd` is -1 unless something was opened. It stays the caller's.
using EventNoteSender = std::function<void(const EventNote& note, int fd)>;

// As it travels, and back; any bytes of the right number are a note.
inline std::span<const std::byte> bytes_of(const EventNote& note) {
  return std::as_bytes(std::span(&note, 1));
}
inline std::optional<EventNote> parse_event_note(std::span<const std::byte> bytes) {
  EventNote note;
  if (bytes.size() != sizeof note) return std::nullopt;
  std::memcpy(&note, bytes.data(), sizeof note);
  return note;
}

// One open perf event. Its records keep resolving after it has been closed, because they may still be in a
// ring.
struct EventSlot {
  UniqueFd fd;
  std::uint64_t id = 0;      // what its records, and those of its inherited copies, are marked with
  std::uint32_t event = 0;   // index into EventPlan::events
  Tid tid{};                 // the task it was opened on
  std::size_t position = 0;  // which of the rings it reports to
  SlotRole role = SlotRole::task_sampling;
  bool is_dropped = false;          // a double: its records do not count
  std::int64_t counted_before = 0;  // its value when it started to contribute to the total
};

// The open events of a collector: who wrote a record, what they add up to, and whether anyone is left.
class EventSlots {
 public:
  // How many events the plan has, and how many rings there are.
  EventSlots(std::size_t events, std::size_t positions) : positions_(positions), retired_(events, 0) {}

  Result<void> add(EventSlot slot);
  // From now on the process that holds the descriptors too hears of every change; follow() is its end.
  void report_to(EventNoteSender sender) { sender_ = std::move(sender); }
  // The sender parses what strangers wrote, so a note may say anything: one that cannot be is passed over.
  void follow(const EventNote& note, UniqueFd fd);
  // For a successor: tasks that have ended since may have given their numbers to others.
  void forget_ended_tasks();
  [[nodiscard]] const EventSlot* find(std::uint64_t id) const;

  // A task that events were opened on was forked below `above`, which had some too: its own may be doubles.
  void task_is_below(Tid tid, Tid above);
  // `slot` has a record of a task that is covered from `nearest`: itself, or the nearest of its ancestors
  // that events were opened on. Where the slot is that of a farther one, all in between are doubles on that
  // CPU.
  void drop_doubles(const EventSlot& slot, Tid nearest);
  // The task is gone. Its last total may still reveal a double, but after a fork the number means another
  // task.
  void task_ended(Tid tid);
  void task_forked(Tid tid);

  // Starts or stops all events of one role.
  Result<void> enable(SlotRole role);
  void disable(SlotRole role);
  // Starts or stops the events of all roles but one event of the plan. The kernel does the same to the copies
  // that tasks have inherited.
  Result<void> enable_all_but(std::uint32_t event);
  void disable_all_but(std::uint32_t event);
  // Changes the sampling period of an event that samples CPUs.
  void set_period_of_cpus(std::uint32_t event, std::uint64_t period);
  // Sends the records of all sampling events to where the rings say now.
  Result<void> redirect(const RingSet& rings);
  // Closes all events of one role; their values stay in the totals.
  void retire(SlotRole role);
  // Closes all events of one role as if they had never been opened.
  void forget(SlotRole role);
  // Closes all events of one role; what they have written is still read. Opened and closed without end, so
  // the slots that were closed by the call before this one are used again.
  void close(SlotRole role);
  // Lets the counting events start from zero now.
  void start_counting();
  // Value of the event over its open slots of one role, and all that were retired.
  [[nodiscard]] std::int64_t total(std::uint32_t event, SlotRole role) const;

  // An open event of a task that can still run; -1 when all have ended. The kernel hangs an event up when its
  // task and all tasks that inherited it have exited.
  int find_live_task_fd();
  [[nodiscard]] std::size_t open_count() const;

 private:
  // Closes the events of one CPU that were opened on `tid` itself and forgets what they counted: there the
  // task turned out to be covered by an event inherited from its creator.
  void drop_duplicates_of(Tid tid, std::size_t position);
  void report(const EventNote& note, int fd = -1) const {
    if (sender_) sender_(note, fd);
  }

  struct DirectTask {
    std::vector<std::size_t> slots;  // its open task_sampling and task_totals slots
    Tid above{};  // the nearest of its ancestors that events were opened on before it was forked; 0: none
    bool has_ended = false;
  };

  std::size_t positions_;
  std::vector<EventSlot> slots_;
  absl::flat_hash_map<std::uint64_t, std::size_t> by_id_;
  absl::flat_hash_map<std::int32_t, DirectTask> direct_;  // by tid
  std::vector<std::int64_t> retired_;
  EventNoteSender sender_;
  std::vector<std::size_t> closed_, reusable_;  // slots: see close()
  std::size_t perhaps_live_ = 0;                // slots below this are not known to be hung up
};

// read(2) of an event, scaled when the counter was shared out over time; 0 when it cannot be read.
std::int64_t read_event_value(int fd);

}  // namespace ddprof
