#include "collect/perf/task_set.hpp"

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

bool TaskSet::add(Tid tid, Pid pid) {
  auto [entry, is_new] = tasks_.try_emplace(to_int(tid));
  if (!is_new) {
    if (entry->second.pid == pid) return false;
    forget(entry->second);  // its exit was lost, and the number used again
    entry->second = Task{};
  }
  entry->second.pid = pid;
  entry->second.place = roster_.add({to_int(tid), to_int(pid)});
  ++threads_of_[to_int(pid)];
  return true;
}

bool TaskSet::remove(Tid tid, Task* last_state) {
  auto entry = tasks_.find(to_int(tid));
  if (entry == tasks_.end()) return false;
  if (last_state != nullptr) *last_state = entry->second;
  forget(entry->second);
  tasks_.erase(entry);
  return true;
}

void TaskSet::exec(Pid pid) {
  add(Tid{to_int(pid)}, pid);
  if (threads_of_[to_int(pid)] == 1) return;
  // Rare: the exits of the other threads have not been seen yet or were lost, or another thread called exec.
  absl::erase_if(tasks_, [&](const auto& entry) {
    bool is_gone = entry.second.pid == pid && entry.first != to_int(pid);
    if (is_gone) forget(entry.second);
    return is_gone;
  });
}

void TaskSet::read_roster(bool are_counted) {
  tasks_.clear();
  threads_of_.clear();
  for (const auto& [place, entry] : roster_.read()) {
    tasks_[entry.tid] = {.pid = Pid{entry.pid}, .is_counted = are_counted, .place = place};
    ++threads_of_[entry.pid];
  }
}

TaskSet::Task* TaskSet::find(Tid tid) {
  auto entry = tasks_.find(to_int(tid));
  return entry == tasks_.end() ? nullptr : &entry->second;
}

const TaskSet::Task* TaskSet::find(Tid tid) const {
  auto entry = tasks_.find(to_int(tid));
  return entry == tasks_.end() ? nullptr : &entry->second;
}

std::vector<Tid> TaskSet::all() const {
  std::vector<Tid> tids;
  for (const auto& [tid, task] : tasks_) tids.push_back(Tid{tid});
  return tids;
}

std::vector<Tid> TaskSet::uncounted() const {
  std::vector<Tid> tids;
  for (const auto& [tid, task] : tasks_)
    if (!task.is_counted) tids.push_back(Tid{tid});
  return tids;
}

std::vector<Pid> TaskSet::processes() const {
  std::vector<Pid> pids;
  for (const auto& [pid, threads] : threads_of_) pids.push_back(Pid{pid});
  return pids;
}

void TaskSet::forget(const Task& task) {
  roster_.remove(task.place);
  auto threads = threads_of_.find(to_int(task.pid));
  if (threads != threads_of_.end() && --threads->second == 0) threads_of_.erase(threads);
}

namespace {

constexpr std::uint64_t kWindow = 500'000'000;
constexpr std::uint64_t kMostWindows = 20;     // to judge by
constexpr std::uint64_t kEnoughInAll = 50;     // a shell script's start is not enough
constexpr std::uint64_t kEnoughInWindow = 10;  // tasks, or periods
constexpr std::uint64_t kGoodPart = 5;         // one in so many

}  // namespace

void ShortTasks::Stretch::add(const Stretch& other) {
  ended += other.ended;
  of_short += other.of_short;
  of_all += other.of_all;
  cpu_ns += other.cpu_ns;
  ++windows;
}

bool ShortTasks::Stretch::has_many() const {
  return ended > kEnoughInWindow || of_short > 2 * kEnoughInWindow;
}

bool ShortTasks::Stretch::is_good_part() const { return of_short * kGoodPart > of_all; }

void ShortTasks::note_end(std::uint64_t time_ns, std::uint32_t samples) {
  matter(time_ns);
  ++window_.of_all;  // half a period after its last sample, on average
  if (samples >= kFewSamples) return;
  ++window_.ended;
  ++all_ended_;
  window_.of_short += 2 * std::uint64_t{samples} + 1;
}

bool ShortTasks::matter(std::uint64_t now_ns) {
  if (window_start_ == 0) window_start_ = now_ns;
  if (now_ns > window_start_ && now_ns - window_start_ >= kWindow) {
    close_window();
    window_start_ = now_ns;
  }
  return have_mattered_;
}

void ShortTasks::close_window() {
  if (all_ended_ >= kEnoughInAll && window_.has_many() && window_.is_good_part()) have_mattered_ = true;
  unjudged_.add(window_);
  window_ = {};
  if (!unjudged_.has_many() && unjudged_.of_all <= 2 * kEnoughInWindow && unjudged_.windows < kMostWindows)
    return;
  judge(unjudged_);
  unjudged_ = {};
}

void ShortTasks::judge(const Stretch& stretch) {
  if (stretch.ended > 0) mean_ns_ = stretch.cpu_ns / stretch.ended;
  if (all_ended_ >= kEnoughInAll && stretch.has_many() && stretch.is_good_part())
    since_they_mattered_ = 0;
  else if (since_they_mattered_ < kSomeJudgements)
    ++since_they_mattered_;
}

}  // namespace ddprof
