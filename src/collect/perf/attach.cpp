#include "collect/perf/attach.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <absl/container/flat_hash_set.h>

#include <cerrno>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

Result<void> enable(int fd) {
  if (::ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0) return errno_error(errno, "enable perf event");
  return {};
}

}  // namespace

Result<void> Attacher::sample_task(Tid tid) {
  for (std::size_t position = 0; position < rings_.cpus().size(); ++position) {
    for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
      const PlannedEvent& planned = plan_.events[event];
      UniqueFd fd =
          TRY(open_perf_event(planned.task_attr, to_int(tid), rings_.cpus()[position], planned.spec.name));
      TRY(rings_.redirect(fd.get(), position));
      if (contexts_ != nullptr) contexts_->attach(fd.get());
      if (!planned.task_attr.enable_on_exec) TRY(enable(fd.get()));
      TRY(slots_.add({.fd = std::move(fd),
                      .event = event,
                      .tid = tid,
                      .position = position,
                      .role = SlotRole::task_sampling}));
      if (planned.spec.is_clock && position < totals_rings_.cpus().size())
        TRY(total_task(tid, event, position));
    }
  }
  return {};
}

// Between two tasks that have inherited the same events, the kernel exchanges them instead of stopping one's
// and starting the other's. A child that runs on the CPU where it was forked then goes on in a period of its
// parent. And what events have counted is exchanged in pairs by their order in a list, which is another one
// in a parent that got some of them later than others: so totals become those of another event or task (25 %
// too much of 1000 forks). A single event that is not inherited prevents it (perf_event_init_context() and
// perf_event_sync_stat() of Linux 6.1).
Result<void> Attacher::keep_apart_from_children(Tid tid) {
  UniqueFd fd = TRY(open_perf_event(ring_attr(plan_.features, 0), to_int(tid), rings_.cpus()[0], "silent"));
  TRY(rings_.redirect(fd.get(), 0));
  return slots_.add({.fd = std::move(fd), .tid = tid, .role = SlotRole::task_ticks});
}

Result<void> Attacher::sample_ticks(Tid tid, std::uint64_t period) {
  TRY(keep_apart_from_children(tid));
  for (std::size_t position = 0; position < rings_.cpus().size(); ++position) {
    for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
      const PlannedEvent& planned = plan_.events[event];
      if (!planned.has_ticks()) continue;
      perf_event_attr attr = planned.ticks_attr;
      attr.sample_period = period;
      UniqueFd fd = TRY(open_perf_event(attr, to_int(tid), rings_.cpus()[position], planned.spec.name));
      TRY(rings_.redirect(fd.get(), position));
      if (contexts_ != nullptr) contexts_->attach(fd.get());
      TRY(enable(fd.get()));
      TRY(slots_.add({.fd = std::move(fd),
                      .event = event,
                      .tid = tid,
                      .position = position,
                      .role = SlotRole::task_ticks}));
    }
  }
  return {};
}

Result<void> Attacher::total_task(Tid tid, std::uint32_t event, std::size_t position) {
  const PlannedEvent& planned = plan_.events[event];
  UniqueFd fd = TRY(
      open_perf_event(planned.totals_attr, to_int(tid), totals_rings_.cpus()[position], planned.spec.name));
  TRY(totals_rings_.redirect(fd.get(), position));
  if (!planned.totals_attr.enable_on_exec) TRY(enable(fd.get()));
  return slots_.add(
      {.fd = std::move(fd), .event = event, .tid = tid, .position = position, .role = SlotRole::task_totals});
}

Result<void> Attacher::sample_threads(Pid pid, std::vector<AttachedTask>& attached) {
  absl::flat_hash_set<std::int32_t> tried;
  constexpr int kMaxListings =
      100;  // a process that creates threads faster than this is followed by inheritance
  bool is_new_found = true;
  for (int listing = 0; is_new_found && listing < kMaxListings; ++listing) {
    is_new_found = false;
    for (Tid tid : list_threads(pid)) {
      if (!tried.insert(to_int(tid)).second) continue;
      is_new_found = true;
      auto result = sample_task(tid);
      if (result.ok())
        attached.push_back({tid, pid});
      else if (result.error().code != ErrorCode::not_found)
        return result;
    }
  }
  return {};
}

// One that is gone is none to be sampled; one that we may not sample does not keep us from the others.
Result<void> Attacher::sample_process(const RunningProcess& process, std::vector<AttachedTask>& attached) {
  auto result = sample_threads(process.pid, attached);
  if (result.ok() || result.error().code != ErrorCode::permission_denied) return result;
  Error error = std::move(result).error();
  error.message =
      fmt::format("attach to process {}: {}", describe_process(process.pid, process.name), error.message);
  refused_.push_back(std::move(error));
  return {};
}

std::vector<RunningProcess> Attacher::list_target(std::span<const Pid> named, Pid except) const {
  if (plan_.has_children) return with_descendants(named, list_processes(), except);
  std::vector<RunningProcess> found;
  for (const Pid pid : named) {
    auto process = read_process(to_int(pid));
    if (process && !process->has_ended()) found.push_back(std::move(*process));
  }
  return found;
}

Result<std::vector<Attacher::AttachedTask>> Attacher::sample_processes(std::span<const Pid> named, Pid except,
                                                                       std::vector<RunningProcess> target) {
  std::vector<AttachedTask> attached;
  absl::flat_hash_set<std::int32_t> tried;
  // What a process forked before it was attached is there when the next listing begins. What comes later
  // inherits, so a program that never stops forking is left to that.
  constexpr int kMaxListings = 20;
  bool is_new_found = true;
  for (int listing = 0; is_new_found && listing < kMaxListings; ++listing) {
    is_new_found = false;
    for (const RunningProcess& process : target) {
      if (!tried.insert(to_int(process.pid)).second) continue;
      is_new_found = true;
      auto result = sample_process(process, attached);
      if (result.ok()) continue;
      if (result.error().code != ErrorCode::exhausted || attached.empty()) return std::move(result).error();
      notices_.push_back(fmt::format("only {} of {} threads are sampled: {} ({})", attached.size(),
                                     thread_count(target), result.error().message, result.error().hint));
      return attached;
    }
    if (!plan_.has_children) break;
    if (is_new_found) target = list_target(named, except);
  }
  if (attached.empty() && !refused_.empty()) return refused_.front();
  if (!refused_.empty())
    notices_.push_back(fmt::format("not sampled: {} process{} that could not be attached to", refused_.size(),
                                   refused_.size() == 1 ? "" : "es"));
  if (!attached.empty()) return attached;
  return make_error(ErrorCode::not_found, "attach to process {}: no such process", to_int(named.front()));
}

Result<void> Attacher::sample_cpus() {
  for (std::size_t position = 0; position < rings_.cpus().size(); ++position) {
    for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
      const PlannedEvent& planned = plan_.events[event];
      UniqueFd fd =
          TRY(open_perf_event(planned.cpu_attr, kAllTasks, rings_.cpus()[position], planned.spec.name));
      TRY(rings_.redirect(fd.get(), position));
      if (contexts_ != nullptr) contexts_->attach(fd.get());
      TRY(slots_.add(
          {.fd = std::move(fd), .event = event, .position = position, .role = SlotRole::cpu_sampling}));
    }
  }
  return {};
}

Result<void> Attacher::count_task(Tid tid, CountFrom from) {
  for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
    const PlannedEvent& planned = plan_.events[event];
    perf_event_attr attr = planned.counting_attr;
    if (from != CountFrom::exec) attr.enable_on_exec = 0;
    if (from == CountFrom::now) attr.disabled = 0;
    UniqueFd fd = TRY(open_perf_event(attr, to_int(tid), kAnyCpu, planned.spec.name));
    TRY(slots_.add({.fd = std::move(fd), .event = event, .tid = tid, .role = SlotRole::counting}));
  }
  return {};
}

std::uint64_t thread_count(std::span<const RunningProcess> processes) {
  std::uint64_t count = 0;
  for (const RunningProcess& process : processes) count += process.threads;
  return count;
}

std::uint64_t descriptors_needed(std::size_t threads, std::size_t cpus, std::size_t events) {
  constexpr std::uint64_t kForEverythingElse = 64;
  constexpr std::uint64_t kForShortTasks = 8;  // on each CPU: FineSampling
  const std::size_t with_totals = events + 1;
  return std::uint64_t{threads} * cpus * with_totals + (2 + kForShortTasks) * cpus + kForEverythingElse;
}

std::uint64_t raise_descriptor_limit(std::uint64_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (needed > limit.rlim_cur && limit.rlim_cur < limit.rlim_max) {
    rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return raised.rlim_cur;
  }
  return limit.rlim_cur;
}

}  // namespace ddprof
