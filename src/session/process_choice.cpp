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

ProcessChoice::Verdict ProcessChoice::judge(const SampleEvent& sample, bool is_cpu_time) {
  if (!options_.is_whole_host) return Verdict::profiled;
  Process& process = processes_.find_or_introduce(sample.pid);
  Verdict verdict = Verdict::profiled;
  if (is_excluded(process)) {
    verdict = Verdict::excluded;
  } else if (!has_room_for(process)) {
    verdict = Verdict::over_limit;
  }
  if (verdict == Verdict::profiled) {
    processes_.identify(process);  // now: at the end of the period it may be gone
    return verdict;
  }
  ProcessCount& count = verdict == Verdict::excluded ? excluded_ : over_limit_;
  count.samples++;
  if (is_cpu_time) count.cpu += sample.value;
  return verdict;
}

bool ProcessChoice::follows(Pid pid) {
  return !options_.is_whole_host || !options_.filter || !is_excluded(processes_.find_or_introduce(pid));
}

void ProcessChoice::note_exit(Pid pid) {
  const Process* process = processes_.find(pid);
  if (process == nullptr || process->has_ended) followed_.erase(to_int(pid));
}

void ProcessChoice::resume(const ProcessCount& excluded, const ProcessCount& over_limit) {
  excluded_ = excluded;
  over_limit_ = over_limit;
}

void ProcessChoice::close_period() {
  absl::erase_if(followed_, [](const auto& entry) { return !entry.second; });
  for (auto& entry : followed_) entry.second = false;
}

}  // namespace ddprof
