#include "runtime/supervisor.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <new>

#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kStartPatience = 20s;  // for a worker to be heard of for the first time
constexpr Nanoseconds kFirstPause = 100ms;   // before another worker, doubled each time
constexpr Nanoseconds kLongestPause = 30s;
constexpr std::uint32_t kEnoughFailures = 4;  // when there is no target any more

Nanoseconds cpu_time(const rusage& usage) {
  auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

}  // namespace

Result<Supervisor> Supervisor::create(PreparedProfiling& prepared, const PerfTarget& target,
                                      const ProfilingRequest& request, SignalInbox& inbox) {
  MappedRegion memory = TRY(MappedRegion::map_anonymous_shared(sizeof(SharedState)));
  return Supervisor(prepared, target, request, inbox, std::move(memory));
}

Supervisor::Supervisor(PreparedProfiling& prepared, const PerfTarget& target, const ProfilingRequest& request,
                       SignalInbox& inbox, MappedRegion memory)
    : prepared_(prepared),
      target_(target),
      request_(request),
      inbox_(inbox),
      memory_(std::move(memory)),
      shared_(new (memory_.data()) SharedState) {
  // A worker looks at its memory once a second and then ends in order. The group is for when that is too
  // late.
  constexpr std::uint64_t kHeadroom = std::uint64_t{32} << 20U;
  const std::uint64_t limit = request.session.max_memory;
  if (auto group = MemoryGroup::create(limit == 0 ? 0 : limit + limit / 2 + kHeadroom))
    memory_group_.emplace(std::move(*group));
}

int Supervisor::run() {
  while (true) {
    if (auto started = start_worker(); !started) {
      request_.say_error(started.error());
      return 1;
    }
    const End end = watch();
    if (end.cause == WorkerEnd::none) return end.exit_status;
    prepared_.collector->reclaim();
    note(end);
    const bool is_over = must_stop_ || prepared_.collector->is_finished();
    if (is_over && failures_ >= kEnoughFailures) return 1;
    if (failures_ > 0) back_off();
  }
}

Result<void> Supervisor::start_worker() {
  channel_ = TRY(NoteChannel::open());
  shared_->fault.signal = 0;
  shared_->continuity.promise(monotonic_now() + kStartPatience);
  exported_before_ = shared_->continuity.legacy().sequence;
  is_worker_gone_ = false;
  std::fflush(nullptr);
  const pid_t self = ::getpid();
  const BlockedSignals blocked;
  worker_ = ::fork();
  if (worker_ < 0) return errno_error(errno, "fork a worker");
  if (worker_ == 0) {
    channel_.supervisor_end.reset();
    if (memory_group_) memory_group_->enter();
    run_worker(prepared_, target_, request_, *shared_, std::move(channel_.worker_end), self);
  }
  channel_.worker_end.reset();
  if (must_stop_) ::kill(worker_, SIGTERM);
  return {};
}

Supervisor::End Supervisor::watch() {
  while (true) {
    const Nanoseconds promised = shared_->continuity.back_by();
    const Nanoseconds before = monotonic_now();
    wait_for_news(promised);
    if (is_worker_gone_) return reap(false);
    const Nanoseconds now = monotonic_now();
    // Whoever slept through it (we were stopped, or the machine was) cannot tell.
    constexpr Nanoseconds kSlept = 5s;
    if (now > std::max(before, promised) + kSlept) shared_->continuity.promise(now + kStartPatience);
    if (now > shared_->continuity.back_by()) {
      ::kill(worker_, SIGKILL);
      return reap(true);
    }
  }
}

void Supervisor::wait_for_news(Nanoseconds until) {
  std::array<pollfd, 2> waiters{pollfd{.fd = channel_.supervisor_end.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = inbox_.wake_fd(), .events = POLLIN, .revents = 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - monotonic_now());
  const auto timeout = std::clamp<std::int64_t>(left.count() + 1, 0, 3'600'000);
  ::poll(waiters.data(), waiters.size(), static_cast<int>(timeout));
  obey_signals();
  if (channel_.supervisor_end.is_open()) take_notes();
}

void Supervisor::take_notes() {
  while (true) {
    ReceivedNote received = receive_note(channel_.supervisor_end.get());
    if (received.kind == ReceivedNote::Kind::nothing_yet) return;
    if (received.kind == ReceivedNote::Kind::closed) {
      is_worker_gone_ = true;
      channel_.supervisor_end.reset();
      return;
    }
    prepared_.collector->follow(received.note, std::move(received.fd));
  }
}

void Supervisor::obey_signals() {
  const std::uint64_t signals = inbox_.take();
  if (signals == 0) return;
  const bool is_asked = SignalInbox::has(signals, SIGTERM) || SignalInbox::has(signals, SIGINT);
  const bool must_stop = is_asked || (has_target_ended && has_target_ended());
  if (must_stop && !must_stop_) {
    must_stop_ = true;
    if (!is_worker_gone_) ::kill(worker_, SIGTERM);
  }
  if (SignalInbox::has(signals, SIGUSR1) && !must_stop_ && !is_worker_gone_) ::kill(worker_, SIGUSR1);
}

Supervisor::End Supervisor::reap(bool was_hung) {
  int status = 0;
  rusage usage{};
  while (::wait4(worker_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (channel_.supervisor_end.is_open()) take_notes();
  shared_->continuity.earlier_cpu += cpu_time(usage).count();
  is_worker_gone_ = true;
  if (was_hung) return {WorkerEnd::hung, 1, "did not make progress and was killed"};
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    if (code == kWorkDone || code == kExportsFailed) return {WorkerEnd::none, code == kWorkDone ? 0 : 1, ""};
    if (code > kReplaceMe && code < kReplaceMe + static_cast<int>(kWorkerEnds))
      return {static_cast<WorkerEnd>(code - kReplaceMe), 0, ""};
    return {WorkerEnd::crashed, 1, fmt::format("ended with status {}", code)};
  }
  const FaultRecord& fault = shared_->fault;
  return {WorkerEnd::crashed, 1,
          fault.signal != 0 ? "crashed: " + describe(fault)
                            : fmt::format("was killed by {}", signal_name(WTERMSIG(status)))};
}

void Supervisor::note(const End& end) {
  shared_->continuity.ends[static_cast<std::size_t>(end.cause)]++;
  const bool has_failed = end.cause == WorkerEnd::crashed || end.cause == WorkerEnd::hung;
  const bool has_exported = shared_->continuity.legacy().sequence > exported_before_;
  failures_ = !has_failed ? 0 : has_exported ? 1 : failures_ + 1;
  if (end.cause == WorkerEnd::memory)
    return request_.say_notice("the profiler's worker reached --max-memory; another one takes over");
  if (!has_failed) return request_.say_notice("the profiler's worker is replaced as planned");
  if (has_told_) return;
  has_told_ = true;
  request_.say_error({ErrorCode::failed, fmt::format("the profiler's worker {}; another one takes over (the "
                                                     "target is not affected; later ones are only counted)",
                                                     end.text)});
}

void Supervisor::back_off() {
  Nanoseconds pause = kFirstPause;
  for (std::uint32_t i = 1; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
  const Nanoseconds until = monotonic_now() + std::min(pause, kLongestPause);
  while (monotonic_now() < until && !must_stop_) wait_for_news(until);
}

int supervise(PreparedProfiling& prepared, const PerfTarget& target, const ProfilingRequest& request,
              SignalInbox& inbox) {
  auto supervisor = Supervisor::create(prepared, target, request, inbox);
  if (supervisor) return supervisor->run();
  request.say_error(supervisor.error());
  return 1;
}

}  // namespace ddprof
