#include "collect/perf/task_set.hpp"

namespace ddprof {

bool TaskSet::add(Tid tid, Pid pid) {
  auto [entry, is_new] = tasks_.try_emplace(to_int(tid));
  if (!is_new) {
    if (entry->second.pid == pid) return false;
    forget_thread_of(entry->second.pid);  // its exit was lost, and the number used again
    entry->second = Task{};
  }
  entry->second.pid = pid;
  ++threads_of_[to_int(pid)];
  return true;
}

bool TaskSet::remove(Tid tid, Task* last_state) {
  auto entry = tasks_.find(to_int(tid));
  if (entry == tasks_.end()) return false;
  if (last_state != nullptr) *last_state = entry->second;
  forget_thread_of(entry->second.pid);
  tasks_.erase(entry);
  return true;
}

void TaskSet::exec(Pid pid) {
  Task* main = find(Tid{to_int(pid)});
  Task survivor = main != nullptr && main->pid == pid ? *main : Task{.pid = pid};
  bool is_alone = main != nullptr && threads_of_[to_int(pid)] == 1;
  // Rare: the exits of the other threads have not been seen yet or were lost, or another thread called exec.
  if (!is_alone) absl::erase_if(tasks_, [&](const auto& entry) { return entry.second.pid == pid; });
  tasks_[to_int(pid)] = survivor;
  threads_of_[to_int(pid)] = 1;
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

void TaskSet::forget_thread_of(Pid pid) {
  auto threads = threads_of_.find(to_int(pid));
  if (threads != threads_of_.end() && --threads->second == 0) threads_of_.erase(threads);
}

}  // namespace ddprof
