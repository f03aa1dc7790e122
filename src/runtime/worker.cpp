#include "runtime/worker.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/mapped_region.hpp"
#include "base/sanitizer.hpp"
#include "runtime/memory_group.hpp"
#include "runtime/signal_inbox.hpp"
#include "runtime/worker_sandbox.hpp"

extern "C" const char __ehdr_start;  // of this program, by the linker
extern "C" const char _end;

namespace ddprof {

namespace {

FaultRecord* fault_record = nullptr;  // a handler can reach globals only

std::uint64_t place_in_program(std::uint64_t address) {
  const auto start = reinterpret_cast<std::uint64_t>(&__ehdr_start);
  const auto end = reinterpret_cast<std::uint64_t>(&_end);
  return address >= start && address < end ? address - start : address;
}

void record_fault(int signal, siginfo_t* info, void*) {
  FaultRecord& record = *fault_record;
  std::array<void*, FaultRecord::kMaxFrames + 2> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  record.address = reinterpret_cast<std::uint64_t>(info->si_addr);
  record.count = 0;
  for (int i = 2; i < count; ++i) {  // this function and the kernel's trampoline
    record.frames[record.count++] =
        place_in_program(reinterpret_cast<std::uint64_t>(frames[static_cast<std::size_t>(i)]));
  }
  record.signal = signal;
  ::raise(signal);  // the disposition is the default again
}

}  // namespace

void record_faults_in(FaultRecord& record) {
  if (kHasSanitizer) return;
  fault_record = &record;
  std::array<void*, 2> warm_up{};
  ::backtrace(warm_up.data(), static_cast<int>(warm_up.size()));  // loads what it needs, not in the handler
  alignas(16) static std::array<std::byte, 65536> stack;
  stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_sigaction = record_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP})
    ::sigaction(signal, &action, nullptr);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const FaultRecord& record) {
  std::string text = fmt::format("{} at {:#x} in", signal_name(record.signal), record.address);
  for (std::size_t i = 0; i < record.count && i < FaultRecord::kMaxFrames; ++i) {
    const std::uint64_t frame = record.frames[i];
    text += fmt::format(" {}{:#x}", frame < (std::uint64_t{1} << 32U) ? "ddprof+" : "", frame);
  }
  return text;
}

}  // namespace ddprof

namespace ddprof {

Result<NoteChannel> NoteChannel::open() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error(errno, "socketpair");
  return NoteChannel{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void send_note(int worker_end, std::span<const std::byte> note, int fd) {
  iovec part{.iov_base = const_cast<std::byte*>(note.data()), .iov_len = note.size()};  // it is only read
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  // If it cannot be sent, the supervisor is gone, and so is the need for it.
  while (::sendmsg(worker_end, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

ReceivedNote receive_note(int supervisor_end) {
  ReceivedNote received;
  iovec part{.iov_base = received.bytes.data(), .iov_len = received.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));  // for one: a second would fit into the padding, and leak
  ssize_t size = ::recvmsg(supervisor_end, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    received.kind = ReceivedNote::Kind::nothing_yet;
    return received;
  }
  if (size <= 0) return received;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len >= CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.fd = UniqueFd(fd);
  }
  received.size = static_cast<std::size_t>(size);
  const bool is_note = (message.msg_flags & MSG_TRUNC) == 0;
  received.kind = is_note ? ReceivedNote::Kind::note : ReceivedNote::Kind::nothing_yet;
  return received;
}

}  // namespace ddprof

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
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
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
  SignalInbox inbox({SIGTERM, SIGUSR1}, {SIGUSR2});
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
  std::uint64_t signals = 0;  // that have come so far
  options.worker.is_replaced = [&inbox, &signals] {
    return SignalInbox::has(signals |= inbox.take(), SIGUSR1);
  };
  // The signal has only woken us.
  options.worker.flushes_wanted = [&inbox, &signals, &shared] {
    signals |= inbox.take();
    return shared.continuity.flushes_wanted.load();
  };
  Session session(*prepared.collector, *prepared.destination, std::move(options));
  const Summary summary = session.run(inbox.any());
  if (::getppid() != supervisor) say_supervisor_is_gone(request);
  if (summary.ending != WorkerEnd::none)
    end_worker(shared, notes, kReplaceMe + static_cast<int>(summary.ending));
  request.say_summary(summary);
  end_worker(shared, notes, summary.failed > 0 ? kExportsFailed : kWorkDone);
}

}  // namespace ddprof
