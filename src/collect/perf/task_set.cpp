#include "collect/perf/task_set.hpp"

namespace ddprof {

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

}  // namespace ddprof
