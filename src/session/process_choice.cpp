#include "session/process_choice.hpp"

#include <utility>

namespace ddprof {

bool ProcessChoice::is_excluded(Process& process) {
  if (!options_.filter) return false;
  if (process.admission == Admission::undecided) {
    const bool is_admitted = options_.filter->admits(gather_facts(processes_, process));
    process.admission = is_admitted ? Admission::admitted : Admission::excluded;
    if (!is_admitted) excluded_.processes++;
  }
  return process.admission == Admission::excluded;
}

bool ProcessChoice::has_room_for(const Process& process) {
  // The last sample of a task may come after the record of its end, which has made room already.
  if (!options_.max_processes || process.has_ended) return true;
  if (auto known = followed_.find(to_int(process.pid)); known != followed_.end()) return known->second = true;
  if (followed_.size() >= *options_.max_processes) return false;
  followed_[to_int(process.pid)] = true;
  return true;
}

ProcessChoice::Choice ProcessChoice::choose(const SampleEvent& sample, bool is_cpu_time) {
  if (!options_.is_whole_host) return Choice::profiled;
  Process& process = processes_.find_or_introduce(sample.pid);
  Choice choice = Choice::profiled;
  if (is_excluded(process)) {
    choice = Choice::excluded;
  } else if (!has_room_for(process)) {
    choice = Choice::over_limit;
  }
  if (choice == Choice::profiled) {
    processes_.identify(process);  // now: at the end of the period it may be gone
    return choice;
  }
  ProcessCount& count = choice == Choice::excluded ? excluded_ : over_limit_;
  count.samples++;
  if (is_cpu_time) count.cpu += sample.value;
  return choice;
}

bool ProcessChoice::follows(Pid pid) {
  return !options_.is_whole_host || !options_.filter || !is_excluded(processes_.find_or_introduce(pid));
}

void ProcessChoice::note_exit(Pid pid) {
  const Process* process = processes_.find(pid);
  if (process == nullptr || process->has_ended) followed_.erase(to_int(pid));
}

void ProcessChoice::close_period() {
  absl::erase_if(followed_, [](const auto& entry) { return !entry.second; });
  for (auto& entry : followed_) entry.second = false;
}

}  // namespace ddprof
