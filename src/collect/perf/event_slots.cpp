#include "collect/perf/event_slots.hpp"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

bool is_hung_up(int fd) {
  pollfd poller{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&poller, 1, 0) == 1 && (poller.revents & POLLHUP) != 0;
}

// Slots of a worker that opens events and closes them again without end.
constexpr std::size_t kMaxSlots = std::size_t{1} << 18U;

// An ioctl() or read() of something else could do anything, and wait for ever.
bool is_perf_event(int fd) {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), link.data(), link.size());
  return length > 0 &&
         std::string_view(link.data(), static_cast<std::size_t>(length)) == "anon_inode:[perf_event]";
}

bool is_of_task(SlotRole role) { return role == SlotRole::task_sampling || role == SlotRole::task_totals; }

}  // namespace

std::int64_t read_event_value(int fd) {
  std::array<std::uint64_t, 3> fields{};  // value, then time enabled and running for hardware events
  ssize_t size = ::read(fd, fields.data(), sizeof fields);
  if (size < static_cast<ssize_t>(sizeof fields[0])) return 0;
  if (size < static_cast<ssize_t>(sizeof fields) || fields[2] == 0 || fields[1] == fields[2])
    return static_cast<std::int64_t>(fields[0]);
  double share = static_cast<double>(fields[1]) / static_cast<double>(fields[2]);
  return static_cast<std::int64_t>(static_cast<double>(fields[0]) * share);
}

Result<void> EventSlots::add(EventSlot slot) {
  if (::ioctl(slot.fd.get(), PERF_EVENT_IOC_ID, &slot.id) != 0)
    return errno_error(errno, "read id of perf event");
  if (by_id_.contains(slot.id))
    return make_error(ErrorCode::failed, "perf event {} is held already", slot.id);
  if (slot.role == SlotRole::task_ticks && !reusable_.empty()) {
    const std::size_t place = reusable_.back();
    reusable_.pop_back();
    by_id_[slot.id] = place;
    slots_[place] = std::move(slot);
    return {};
  }
  if (slot.role != SlotRole::task_ticks)
    report({.step = EventNote::Step::opened,
            .role = slot.role,
            .event = slot.event,
            .tid = to_int(slot.tid),
            .position = static_cast<std::uint32_t>(slot.position)},
           slot.fd.get());
  by_id_[slot.id] = slots_.size();
  if (is_of_task(slot.role)) direct_[to_int(slot.tid)].slots.push_back(slots_.size());
  slots_.push_back(std::move(slot));
  perhaps_live_ = slots_.size();
  return {};
}

void EventSlots::follow(const EventNote& note, UniqueFd fd) {
  switch (note.step) {
    case EventNote::Step::opened:
      // A descriptor that did not arrive, or cannot be asked, is only not held.
      if (note.event >= retired_.size() || note.position >= positions_ || note.role > SlotRole::counting ||
          slots_.size() >= kMaxSlots || !is_perf_event(fd.get()))
        return;
      (void)add({.fd = std::move(fd),
                 .event = note.event,
                 .tid = Tid{note.tid},
                 .position = note.position,
                 .role = note.role});
      return;
    case EventNote::Step::retired:
      return retire(note.role);
    case EventNote::Step::forgotten:
      return forget(note.role);
    case EventNote::Step::task_dropped:
      return drop_duplicates_of(Tid{note.tid}, note.position);
    case EventNote::Step::counting_started:
      return start_counting();
    case EventNote::Step::mode_changed:
    case EventNote::Step::paused:
    case EventNote::Step::resumed:
    case EventNote::Step::redirected:
      return;
  }
}

void EventSlots::forget_ended_tasks() {
  absl::erase_if(direct_, [](const auto& entry) { return !is_alive(Tid{entry.first}); });
}

const EventSlot* EventSlots::find(std::uint64_t id) const {
  auto entry = by_id_.find(id);
  return entry == by_id_.end() ? nullptr : &slots_[entry->second];
}

void EventSlots::drop_duplicates_of(Tid tid, std::size_t position) {
  auto direct = direct_.find(to_int(tid));
  if (direct == direct_.end()) return;
  const std::size_t dropped = std::erase_if(direct->second.slots, [&](std::size_t index) {
    EventSlot& slot = slots_[index];
    if (slot.position != position) return false;
    slot.is_dropped = true;
    slot.fd.reset();
    return true;
  });
  if (dropped == 0) return;
  report({.step = EventNote::Step::task_dropped,
          .tid = to_int(tid),
          .position = static_cast<std::uint32_t>(position)});
}

void EventSlots::task_is_below(Tid tid, Tid above) {
  auto direct = direct_.find(to_int(tid));
  if (direct != direct_.end() && tid != above) direct->second.above = above;
}

void EventSlots::drop_doubles(const EventSlot& slot, Tid nearest) {
  constexpr int kDeepest = 64;  // numbers that are used again could make a circle
  if (!is_of_task(slot.role)) return;
  for (int depth = 0; nearest != slot.tid && depth < kDeepest; ++depth) {
    auto direct = direct_.find(to_int(nearest));
    if (direct == direct_.end()) return;
    drop_duplicates_of(nearest, slot.position);
    nearest = direct->second.above;
  }
}

void EventSlots::task_ended(Tid tid) {
  auto direct = direct_.find(to_int(tid));
  if (direct != direct_.end()) direct->second.has_ended = true;
}

void EventSlots::task_forked(Tid tid) {
  auto direct = direct_.find(to_int(tid));
  if (direct != direct_.end() && direct->second.has_ended) direct_.erase(direct);
}

Result<void> EventSlots::enable(SlotRole role) {
  for (const EventSlot& slot : slots_) {
    if (slot.role != role || !slot.fd.is_open()) continue;
    if (::ioctl(slot.fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return errno_error(errno, "enable perf event");
  }
  return {};
}

void EventSlots::set_period_of_cpus(std::uint32_t event, std::uint64_t period) {
  for (const EventSlot& slot : slots_) {
    if (slot.role == SlotRole::cpu_sampling && slot.event == event && slot.fd.is_open())
      ::ioctl(slot.fd.get(), PERF_EVENT_IOC_PERIOD, &period);
  }
}

void EventSlots::disable(SlotRole role) {
  for (const EventSlot& slot : slots_)
    if (slot.role == role && slot.fd.is_open()) ::ioctl(slot.fd.get(), PERF_EVENT_IOC_DISABLE, 0);
}

void EventSlots::disable_all_but(std::uint32_t event) {
  for (const EventSlot& slot : slots_)
    if (slot.event != event && slot.fd.is_open()) ::ioctl(slot.fd.get(), PERF_EVENT_IOC_DISABLE, 0);
}

Result<void> EventSlots::enable_all_but(std::uint32_t event) {
  for (const EventSlot& slot : slots_) {
    if (slot.event == event || !slot.fd.is_open()) continue;
    if (::ioctl(slot.fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return errno_error(errno, "enable perf event");
  }
  return {};
}

Result<void> EventSlots::redirect(const RingSet& rings) {
  for (const EventSlot& slot : slots_) {
    const bool is_sampling = slot.role == SlotRole::task_sampling || slot.role == SlotRole::cpu_sampling ||
                             slot.role == SlotRole::task_ticks;
    if (is_sampling && slot.fd.is_open()) TRY(rings.redirect(slot.fd.get(), slot.position));
  }
  return {};
}

void EventSlots::retire(SlotRole role) {
  report({.step = EventNote::Step::retired, .role = role});
  for (EventSlot& slot : slots_) {
    if (slot.role != role || !slot.fd.is_open()) continue;
    retired_[slot.event] += read_event_value(slot.fd.get()) - slot.counted_before;
    slot.fd.reset();
  }
  if (role == SlotRole::task_sampling) direct_.clear();
}

void EventSlots::forget(SlotRole role) {
  report({.step = EventNote::Step::forgotten, .role = role});
  for (EventSlot& slot : slots_) {
    if (slot.role != role || !slot.fd.is_open()) continue;
    slot.fd.reset();
    slot.is_dropped = true;
  }
}

void EventSlots::close(SlotRole role) {
  for (const std::size_t place : closed_) by_id_.erase(slots_[place].id);
  reusable_.insert(reusable_.end(), closed_.begin(), closed_.end());
  closed_.clear();
  for (std::size_t place = 0; place < slots_.size(); ++place) {
    if (slots_[place].role != role || !slots_[place].fd.is_open()) continue;
    slots_[place].fd.reset();
    closed_.push_back(place);
  }
}

void EventSlots::start_counting() {
  report({.step = EventNote::Step::counting_started});
  for (EventSlot& slot : slots_)
    if (slot.role == SlotRole::counting && slot.fd.is_open())
      slot.counted_before = read_event_value(slot.fd.get());
}

std::int64_t EventSlots::total(std::uint32_t event, SlotRole role) const {
  std::int64_t sum = retired_[event];
  for (const EventSlot& slot : slots_)
    if (slot.event == event && slot.role == role && slot.fd.is_open())
      sum += read_event_value(slot.fd.get()) - slot.counted_before;
  return sum;
}

int EventSlots::find_live_task_fd() {
  for (; perhaps_live_ > 0; --perhaps_live_) {
    EventSlot& slot = slots_[perhaps_live_ - 1];
    if (!slot.fd.is_open() || slot.role != SlotRole::task_sampling) continue;
    if (!is_hung_up(slot.fd.get())) return slot.fd.get();
  }
  return -1;
}

std::size_t EventSlots::open_count() const {
  std::size_t count = 0;
  for (const EventSlot& slot : slots_) count += slot.fd.is_open() ? 1U : 0U;
  return count;
}

}  // namespace ddprof
