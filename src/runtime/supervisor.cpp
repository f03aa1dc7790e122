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
constexpr Nanoseconds kFlushPace = 20ms;      // to look whether a profile that was asked for has left
constexpr std::uint32_t kEnoughFailures = 4;  // when there is no target any more
constexpr std::uint32_t kEnoughHangs = 2;     // likewise: each takes long
constexpr Nanoseconds kShortLife = 1s;        // another worker waits a little after one that ended so soon
constexpr Nanoseconds kEndPatience = 2s;  // for a worker that was killed, or has said farewell, to be gone
constexpr Nanoseconds kLongestPromise = 75s;  // of any worker, and the time for its last upload
constexpr std::size_t kMostLeftBehind = 4;    // each holds its memory until its call returns
constexpr int kMostNotes = 1024;              // are read at once: a worker cannot keep us from anything else

Nanoseconds cpu_time(const rusage& usage) {
  auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

}  // namespace

Result<Supervisor> Supervisor::create(PreparedProfiling& prepared, const Target& target,
                                      const ProfilingRequest& request, SignalInbox& inbox) {
  MappedRegion memory = TRY(MappedRegion::map_anonymous_shared(sizeof(SharedState)));
  return Supervisor(prepared, target, request, inbox, std::move(memory));
}

Supervisor::Supervisor(PreparedProfiling& prepared, const Target& target, const ProfilingRequest& request,
                       SignalInbox& inbox, MappedRegion memory)
    : prepared_(prepared),
      target_(target),
      request_(request),
      inbox_(inbox),
      memory_(std::move(memory)),
      shared_(new (memory_.data()) SharedState) {
  // A worker checks its memory once a second and then ends in order. The group is for when that is too
  // late.
  constexpr std::uint64_t kHeadroom = std::uint64_t{32} << 20U;
  const std::uint64_t limit = request.session.limits.memory;
  if (auto group = MemoryGroup::create(limit == 0 ? 0 : limit + limit / 2 + kHeadroom))
    memory_group_.emplace(std::move(*group));
}

int Supervisor::run() {
  raise_oom_score(kSupervisorOomScore);
  std::uint32_t hangs = 0;
  while (true) {
    while (!make_room()) {
      if (must_stop_) return 1;
      wait_for_news(monotonic_now() + 1s);
    }
    if (auto started = start_worker(); !started) {
      request_.say_error(started.error());
      return 1;
    }
    const End end = watch();
    if (end.cause == WorkerEnd::none) return end.exit_status;
    if (Handover* handover = prepared_.collector->handover()) handover->reclaim();
    note(end);
    const bool is_over = must_stop_ || prepared_.collector->is_finished();
    if (is_over && end.cause == WorkerEnd::hung) ++hangs;
    if (is_over && (failures_ >= kEnoughFailures || hangs >= kEnoughHangs)) return 1;
    if (failures_ > 0 || monotonic_now() - worker_started_ < kShortLife) back_off();
  }
}

Result<void> Supervisor::start_worker() {
  channel_ = TRY(NoteChannel::open());
  shared_->fault.signal = 0;
  shared_->farewell = SharedState::kNoFarewell;
  worker_started_ = monotonic_now();
  shared_->continuity.promise(worker_started_ + kStartPatience);
  exported_before_ = shared_->continuity.handover().sequence;
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
  if (is_flushing_) ::kill(worker_, SIGUSR2);
  return {};
}

// A worker that promised to be back next year would never be found to hang.
Nanoseconds Supervisor::promised() const {
  const Nanoseconds latest = monotonic_now() + kLongestPromise + request_.session.exit_timeout;
  return std::clamp(shared_->continuity.back_by(), Nanoseconds(0), latest);
}

Supervisor::End Supervisor::watch() {
  while (true) {
    const Nanoseconds until = promised();
    const Nanoseconds before = monotonic_now();
    wait_for_news(until);
    if (is_worker_gone_) return reap(false);
    const Nanoseconds now = monotonic_now();
    // A supervisor that slept through it (it was stopped, or the machine was) cannot tell.
    constexpr Nanoseconds kSlept = 5s;
    if (now > std::max(before, until) + kSlept) shared_->continuity.promise(now + kStartPatience);
    if (now > promised()) {
      ::kill(worker_, SIGKILL);
      return reap(true);
    }
  }
}

void Supervisor::wait_for_news(Nanoseconds until) {
  const int control = request_.control && !must_stop_ ? request_.control->descriptor() : -1;
  std::array<pollfd, 3> waiters{pollfd{.fd = channel_.supervisor_end.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = inbox_.wake_fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = control, .events = POLLIN, .revents = 0}};
  if (is_flushing_) until = std::min(until, monotonic_now() + kFlushPace);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - monotonic_now());
  const auto timeout = std::clamp<std::int64_t>(left.count() + 1, 0, 3'600'000);
  ::poll(waiters.data(), waiters.size(), static_cast<int>(timeout));
  obey_signals();
  if (control >= 0) obey_control();
  if (is_flushing_) finish_flush();
  if (channel_.supervisor_end.is_open()) take_notes();
}

void Supervisor::take_notes() {
  for (int i = 0; i < kMostNotes; ++i) {
    ReceivedNote received = receive_note(channel_.supervisor_end.get());
    if (received.kind == ReceivedNote::Kind::nothing_yet) return;
    if (received.kind == ReceivedNote::Kind::closed) {
      is_worker_gone_ = true;
      channel_.supervisor_end.reset();
      return;
    }
    if (Handover* handover = prepared_.collector->handover())
      handover->follow(received.note(), std::move(received.fd));
  }
}

void Supervisor::obey_signals() {
  const std::uint64_t signals = inbox_.take();
  if (signals == 0) return;
  const bool is_asked = SignalInbox::has(signals, SIGTERM) || SignalInbox::has(signals, SIGINT);
  if (is_asked || (has_target_ended && has_target_ended())) stop();
  if (SignalInbox::has(signals, SIGUSR1) && !must_stop_ && !is_worker_gone_) ::kill(worker_, SIGUSR1);
}

void Supervisor::stop() {
  if (must_stop_) return;
  must_stop_ = true;
  if (!is_worker_gone_) ::kill(worker_, SIGTERM);
}

void Supervisor::obey_control() {
  while (const auto command = request_.control->take()) {
    if (*command == DDPROF_CONTROL_STOP) return stop();
    if (!request_.session.periods.length) {
      request_.control->say(DDPROF_CONTROL_FLUSHED,
                            "there is one profile, of the whole run: it is written when profiling stops");
      continue;
    }
    is_flushing_ = true;
    ++shared_->continuity.flushes_wanted;
    if (!is_worker_gone_) ::kill(worker_, SIGUSR2);
  }
}

void Supervisor::finish_flush() {
  const Continuity& continuity = shared_->continuity;
  if (continuity.flushes != continuity.flushes_wanted ||
      continuity.handover().sequence < continuity.flushed_sequence)
    return;
  is_flushing_ = false;
  request_.control->say(DDPROF_CONTROL_FLUSHED);
}

// Signals are obeyed meanwhile.
std::optional<int> Supervisor::await_end(Nanoseconds patience) {
  const Nanoseconds deadline = monotonic_now() + patience;
  constexpr Nanoseconds kLongestNap = 50ms;
  for (Nanoseconds nap = 1ms;; nap = std::min(nap * 2, kLongestNap)) {
    int status = 0;
    rusage usage{};
    const pid_t ended = ::wait4(worker_, &status, WNOHANG, &usage);
    if (ended == worker_) {
      shared_->continuity.earlier_cpu += cpu_time(usage).count();
      return status;
    }
    if (monotonic_now() >= deadline) return std::nullopt;
    wait_for_news(monotonic_now() + nap);
  }
}

Supervisor::End Supervisor::reap(bool was_hung) {
  auto status = await_end(kEndPatience);
  const int farewell = shared_->farewell;
  if (!status && !was_hung && farewell == SharedState::kNoFarewell) {  // it only closed the channel
    ::kill(worker_, SIGKILL);
    status = await_end(kEndPatience);
  }
  if (channel_.supervisor_end.is_open()) take_notes();
  channel_.supervisor_end.reset();
  is_worker_gone_ = true;
  if (!status) leave_behind();
  if (was_hung) return {WorkerEnd::hung, 1, "did not make progress and was killed"};
  if (!status && farewell == SharedState::kNoFarewell) return {WorkerEnd::hung, 1, "did not end"};
  return judge(status.value_or(W_EXITCODE(farewell & 0xff, 0)));
}

void Supervisor::leave_behind() {
  ::kill(worker_, SIGKILL);  // for when its call returns
  left_behind_.push_back(worker_);
  request_.say_error(make_error(ErrorCode::failed,
                                "the profiler's worker {} hangs in the kernel, in a file system or memory "
                                "that does not answer, and is left behind",
                                worker_));
}

bool Supervisor::make_room() {
  std::erase_if(left_behind_, [](pid_t worker) { return ::waitpid(worker, nullptr, WNOHANG) != 0; });
  return left_behind_.size() < kMostLeftBehind;
}

Supervisor::End Supervisor::judge(int status) const {
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
  const bool has_exported = shared_->continuity.handover().sequence > exported_before_;
  failures_ = !has_failed ? 0 : has_exported ? 1 : failures_ + 1;
  if (end.cause == WorkerEnd::memory)
    return request_.say_notice("the profiler's worker reached --max-memory; another one takes over");
  if (!has_failed) return request_.say_notice("the profiler's worker is replaced as planned");
  if (has_reported_crash_) return;
  has_reported_crash_ = true;
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

int supervise(PreparedProfiling& prepared, const Target& target, const ProfilingRequest& request,
              SignalInbox& inbox) {
  auto supervisor = Supervisor::create(prepared, target, request, inbox);
  if (supervisor) return supervisor->run();
  request.say_error(supervisor.error());
  return 1;
}

}  // namespace ddprof
