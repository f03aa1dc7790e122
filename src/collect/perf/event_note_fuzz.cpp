#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "collect/perf/event_slots.hpp"
#include "collect/perf/task_set.hpp"

// What a worker that was taken over can make its supervisor, and the next worker, believe of events and
// tasks. Input: a byte that says how much of the rest is scribbled over the roster of tasks, in parts of 64
// bytes; what follows are notes that each begin with their length, and with a descriptor where that is above
// 127.

namespace {

using Bytes = std::span<const std::uint8_t>;

Bytes take(Bytes& from, std::size_t size) {
  const Bytes taken = from.first(std::min(size, from.size()));
  from = from.subspan(taken.size());
  return taken;
}

void read_roster(Bytes bytes) {
  auto memory = ddprof::MappedRegion::map_anonymous_shared(std::max<std::size_t>(bytes.size(), 8));
  if (!memory.ok()) return;
  if (!bytes.empty()) std::memcpy(memory->data(), bytes.data(), bytes.size());
  ddprof::TaskSet tasks;
  tasks.share(ddprof::TaskRoster(std::move(memory).value()));
  tasks.read_roster(true);
  for (const ddprof::Tid tid : tasks.all()) tasks.remove(tid);
}

void follow_notes(Bytes bytes) {
  ddprof::EventSlots slots(2, 2);
  while (!bytes.empty()) {
    const std::uint8_t length = take(bytes, 1).front();
    const auto note = ddprof::parse_event_note(std::as_bytes(take(bytes, length & 0x7fU)));
    ddprof::UniqueFd fd(length > 0x7f ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : -1);
    if (note) slots.follow(*note, std::move(fd));
  }
}

int next_descriptor() { return ddprof::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPart = 64;
  Bytes bytes(data, size);
  if (bytes.empty()) return 0;
  const std::size_t parts = take(bytes, 1).front();
  read_roster(take(bytes, parts * kPart));
  const int next = next_descriptor();
  follow_notes(bytes);
  if (next_descriptor() != next) __builtin_trap();  // one has stayed behind
  return 0;
}
