#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>

#include "collect/collector.hpp"

namespace ddprof {

enum class SlotRole : std::uint8_t {
  task_sampling,  // inherited, one task and its descendants on one CPU
  task_totals,    // likewise, but only to tell the exact value of each task that ends
  cpu_sampling,   // all tasks of one CPU
  counting,       // inherited, one task and its descendants, all CPUs, no ring
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

}  // namespace ddprof
