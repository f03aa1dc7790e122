#include "collect/perf/task_roster.hpp"

namespace ddprof {

namespace {

constexpr std::int32_t kMostPid = 1 << 22;  // PID_MAX_LIMIT of the kernel

bool is_number(std::int32_t number) { return number > 0 && number <= kMostPid; }

}  // namespace

Result<TaskRoster> TaskRoster::create() {
  return TaskRoster(TRY(MappedRegion::map_anonymous_shared(kEntries * sizeof(Entry))));
}

std::span<TaskRoster::Entry> TaskRoster::entries() const {
  return {reinterpret_cast<Entry*>(memory_.data()), memory_.size() / sizeof(Entry)};
}

std::uint32_t TaskRoster::add(const Entry& entry) {
  std::uint32_t at = kNowhere;
  if (!free_.empty()) {
    at = free_.back();
    free_.pop_back();
  } else if (next_ < entries().size()) {
    at = next_++;
  }
  if (at != kNowhere) entries()[at] = entry;
  return at;
}

void TaskRoster::remove(std::uint32_t at) {
  if (at == kNowhere) return;
  entries()[at] = {};
  free_.push_back(at);
}

std::vector<std::pair<std::uint32_t, TaskRoster::Entry>> TaskRoster::read() {
  std::vector<std::pair<std::uint32_t, Entry>> found;
  free_.clear();
  next_ = 0;
  auto all = entries();
  for (std::uint32_t at = 0; at < all.size(); ++at) {
    const Entry entry = all[at];
    if (!is_number(entry.tid) || !is_number(entry.pid)) continue;
    for (; next_ < at; ++next_) free_.push_back(next_);
    next_ = at + 1;
    found.emplace_back(at, entry);
  }
  return found;
}

}  // namespace ddprof
