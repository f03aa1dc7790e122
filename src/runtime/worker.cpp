#include "runtime/worker.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/sanitizer.hpp"
#include "base/truncated_files.hpp"
#include "runtime/memory_group.hpp"
#include "runtime/note_channel.hpp"
#include "runtime/signal_inbox.hpp"
#include "runtime/worker_sandbox.hpp"

namespace ddprof {

namespace {

// Signals that a terminal sends to the whole job are not meant for us. And where the kernel shares CPUs out
// among sessions (autogroup) we have a share of our own, however many threads the target has: among a
// thousand of them a thousandth of a core is too little to empty the rings.
void leave_the_job() {
  ::setsid();
  for (int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTOU, SIGPIPE}) ::signal(signal, SIG_IGN);
}

void unblock_signals() {
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// All threads of the profiler take turns on one core, wherever the scheduler has put us.
void stay_on_one_cpu() {
  const int cpu = ::sched_getcpu();
  if (cpu < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// Short turns come sooner (Linux 6.12; older kernels take no notice). Among a thousand busy threads the rings
// would overflow before we get one of the usual length. Our share of the CPU stays what it is.
void ask_for_short_turns() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
  static_assert(sizeof attributes == 48);  // SCHED_ATTR_SIZE_VER0 of the kernel
  constexpr std::uint64_t kShortest = 100'000;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kShortest;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void limit_memory(std::uint64_t bytes) {
  rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);  // it would hold parts of the target
  // The session keeps below by itself; this is for when it cannot. Stacks of threads count in full here.
  constexpr std::uint64_t kForStacks = std::uint64_t{128} << 20U;
  rlimit limit{bytes + kForStacks, bytes + kForStacks};
  if (bytes > 0 && !kHasSanitizer) ::setrlimit(RLIMIT_DATA, &limit);
}

// A thread that hangs in the kernel (a read of a file system whose server is gone) keeps this process from
// ending, and its descriptors open: the supervisor, and who reads our output through a pipe, hear of the end
// all the same.
[[noreturn]] void end_worker(SharedState& shared, const UniqueFd& notes, int status) {
  std::fflush(nullptr);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  shared.farewell = status;
  ::shutdown(notes.get(), SHUT_RDWR);
  std::_Exit(status);
}

void say_supervisor_is_gone(const ProfilingRequest& request) {
  request.say_error(
      make_error(ErrorCode::failed,
                 "the profiler's supervisor was killed: profiling has ended (the target is not affected)"));
}

}  // namespace

void run_worker(PreparedProfiling& prepared, const Target& target, const ProfilingRequest& request,
                SharedState& shared, UniqueFd notes, pid_t supervisor) {
  leave_the_job();
  SignalInbox inbox({SIGTERM, SIGUSR1});
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != supervisor) {
    say_supervisor_is_gone(request);
    std::_Exit(kNoWork);
  }
  unblock_signals();
  if (request.cpu_affinity.empty()) stay_on_one_cpu();
  ask_for_short_turns();
  limit_memory(request.session.limits.memory);
  raise_oom_score(kWorkerOomScore);
  if (request.has_fault_info) record_faults_in(shared.fault);
  survive_truncated_files();

  const auto send = [&notes](std::span<const std::byte> note, int fd) { send_note(notes.get(), note, fd); };
  Handover* const handover = prepared.collector->handover();
  if (auto taken = handover != nullptr ? handover->take_over(inbox.wake_fd(), send) : Result<void>();
      !taken) {
    request.say_error(taken.error());
    std::_Exit(kNoWork);
  }
  SessionOptions options = session_options(prepared, target, request);
  // Runtimes of sanitizers do all kinds of things.
  if (auto entered =
          kHasSanitizer ? Result<void>() : enter_worker_sandbox(prepared.collector->needed_calls());
      !entered)
    options.notices.push_back("the profiler runs without a sandbox: " + entered.error().message);
  options.worker.continuity = &shared.continuity;
  options.worker.is_replaced = [&inbox] { return SignalInbox::has(inbox.take(), SIGUSR1); };
  Session session(*prepared.collector, *prepared.destination, std::move(options));
  const Summary summary = session.run(inbox.any());
  if (::getppid() != supervisor) say_supervisor_is_gone(request);
  if (summary.ending != WorkerEnd::none)
    end_worker(shared, notes, kReplaceMe + static_cast<int>(summary.ending));
  request.say_summary(summary);
  end_worker(shared, notes, summary.failed > 0 ? kExportsFailed : kWorkDone);
}

}  // namespace ddprof
