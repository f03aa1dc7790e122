#include "runtime/recorder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/unique_fd.hpp"
#include "runtime/detached_process.hpp"
#include "runtime/program.hpp"
#include "runtime/supervisor.hpp"
#include "wire/heap.h"

namespace ddprof {

namespace {

// A child that has been forked and waits for the word to become the program.
struct HeldChild {
  pid_t pid = -1;
  UniqueFd start;   // what is written here, and its end, lets it go
  UniqueFd failed;  // errno of a failed exec; end of file when it has succeeded
};

const std::string kGo = "go";

// In the child; none: the profiler has ended.
std::optional<std::vector<std::string>> read_environment(int fd) {
  std::string text;
  std::array<char, 1024> buffer;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (!text.starts_with(kGo)) return std::nullopt;
  return split_environment(text.substr(kGo.size()));
}

Result<HeldChild> fork_held(const std::vector<std::string>& program, const ProfilingRequest& request) {
  std::array<int, 2> start{};
  std::array<int, 2> failed{};
  if (::pipe2(start.data(), O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  UniqueFd start_reader(start[0]);
  UniqueFd start_writer(start[1]);
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  UniqueFd failed_reader(failed[0]);
  UniqueFd failed_writer(failed[1]);
  pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "fork");
  if (pid == 0) {
    start_writer.reset();  // else we would wait for ourselves when the profiler dies
    auto environment = read_environment(start_reader.get());
    if (!environment) std::_Exit(kExitNotExecutable);
    add_to_environment(*environment);
    if (auto limited = limit_privileges(request.privileges); !limited) {
      request.say_error(limited.error());
      std::_Exit(kExitNotExecutable);
    }
    [[maybe_unused]] Error error = exec_program(program);
    int reason = errno;
    [[maybe_unused]] ssize_t written = ::write(failed_writer.get(), &reason, sizeof reason);
    std::_Exit(kExitNotFound);
  }
  return HeldChild{pid, std::move(start_writer), std::move(failed_reader)};
}

// Lets the child go; an errno when it could not become the program.
std::optional<int> release(HeldChild& child, const std::vector<std::string>& environment) {
  const std::string text = kGo + join_environment(environment);
  if (::write(child.start.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return errno;
  child.start.reset();
  int reason = 0;
  ssize_t count = 0;
  while ((count = ::read(child.failed.get(), &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  return count == static_cast<ssize_t>(sizeof reason) ? std::optional(reason) : std::nullopt;
}

// How the child ended. It stays a zombie until wait_status(): its number must not be used again while a
// worker still reads about it.
class ChildEnd {
 public:
  explicit ChildEnd(pid_t pid) : pid_(pid) {}

  int wait_status() const {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  // CPU time charged to it and to all descendants that were waited for, once it has ended.
  [[nodiscard]] std::optional<std::int64_t> charged_cpu() const {
    siginfo_t info{};
    rusage usage{};
    // The C library does not know of the last argument.
    if (::syscall(SYS_waitid, P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT, &usage) != 0 ||
        info.si_pid == 0)
      return std::nullopt;
    auto nanoseconds = [](const timeval& time) { return time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000; };
    return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
  }

 private:
  pid_t pid_;
};

// In a worker: what the supervisor has learnt of the child's end, which may come after its last record.
std::int64_t await_charge(const Continuity& continuity, std::int64_t otherwise) {
  constexpr int kMilliseconds = 2000;
  for (int i = 0; i < kMilliseconds && continuity.charged_cpu < 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::int64_t charged = continuity.charged_cpu;
  return charged >= 0 ? charged : otherwise;
}

// Ends as the target ended, so that our parent cannot tell the difference.
int end_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

std::atomic<pid_t> forward_to{-1};
void forward(int signal) { ::kill(forward_to, signal); }

// Signals of the terminal reach the target by themselves; others that are meant for it are passed on.
class TargetSignals {
 public:
  explicit TargetSignals(pid_t child) {
    forward_to = child;
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGQUIT, &action, &quit_);
    action.sa_handler = forward;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTERM, &action, &terminate_);
    ::sigaction(SIGHUP, &action, &hang_up_);
  }
  ~TargetSignals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hang_up_, nullptr);
  }
  TargetSignals(const TargetSignals&) = delete;
  TargetSignals& operator=(const TargetSignals&) = delete;

 private:
  struct sigaction interrupt_ {
  }, quit_{}, terminate_{}, hang_up_{};
};

void supervise_child(PreparedProfiling& prepared, const Target& target, ProfilingRequest& request,
                     SignalInbox& inbox, const ChildEnd& end) {
  auto supervisor = Supervisor::create(prepared, target, request, inbox);
  if (!supervisor) return request.say_error(supervisor.error());
  Continuity& continuity = supervisor->shared().continuity;
  // Without a duration a session ends only when the target does.
  const bool ends_with_target = !request.session.periods.duration;
  request.session.charged_cpu.is_exact = ends_with_target;
  request.session.charged_cpu.ask = [&continuity, ends_with_target](std::int64_t counted, bool is_final) {
    if (!is_final) return counted;
    return ends_with_target ? await_charge(continuity, counted) : counted;
  };
  supervisor->has_target_ended = [&end, &continuity] {
    auto charged = end.charged_cpu();
    if (charged) continuity.charged_cpu = *charged;
    return charged.has_value();
  };
  supervisor->run();
}

// At once, and not at the end: the user who asked for them may want to stop here.
void say_who_is_missing(const std::vector<Error>& refused, const ProfilingRequest& request) {
  constexpr std::size_t kSaid = 3;
  for (std::size_t i = 0; i < std::min(refused.size(), kSaid); ++i) request.say_error(refused[i]);
  if (refused.size() > kSaid)
    request.say_error(make_error(ErrorCode::permission_denied, "{} more processes cannot be attached to",
                                 refused.size() - kSaid));
}

// For the library in a program that profiles itself, which is told what others find in their environment.
std::string arena_of(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = DDPROF_HEAP_VARIABLE "=";
  for (const std::string& variable : environment)
    if (variable.starts_with(kName)) return variable.substr(kName.size());
  return {};
}

std::string with_its_hint(const Error& error) {
  return error.hint.empty() ? error.message : fmt::format("{}; try: {}", error.message, error.hint);
}

}  // namespace

int run_recorded(const std::vector<std::string>& program, ProfilingRequest request) {
  if (auto refused = refuse_to_run(program[0], request.privileges, request.say_error)) return *refused;
  leave_orphans_behind();
  auto child = fork_held(program, request);
  if (!child) {
    request.say_error(child.error());
    return kExitNotExecutable;
  }
  TargetSignals passing(child->pid);
  SignalInbox inbox({SIGCHLD, SIGUSR1});
  const Target target = Target::command(Pid{child->pid});
  auto limited = apply_limits(request);
  auto prepared = limited ? prepare(target, request) : Result<PreparedProfiling>(std::move(limited).error());
  if (!prepared) {
    Error error = prepared.error();
    error.message = "running without profiling: " + error.message;
    request.say_error(error);
  }
  if (auto reason = release(
          *child, prepared ? prepared->collector->target_environment() : std::vector<std::string>())) {
    ChildEnd(child->pid).wait_status();
    Error error = errno_error(*reason, "cannot run " + program[0]);
    request.say_error(error);
    return exit_status_of(error);
  }
  ChildEnd end(child->pid);
  if (prepared) request.say_start(target.root(), prepared->destination->describe());
  if (prepared) supervise_child(*prepared, target, request, inbox, end);
  return end_like(end.wait_status());
}

int run_attached(const Target& target, ProfilingRequest request) {
  SignalInbox inbox({SIGINT, SIGTERM, SIGUSR1});
  auto limited = apply_limits(request);
  auto prepared = limited ? prepare(target, request) : Result<PreparedProfiling>(std::move(limited).error());
  if (!prepared) {
    request.say_error(prepared.error());
    if (request.control) request.control->say(DDPROF_CONTROL_FAILED, with_its_hint(prepared.error()));
    return 1;
  }
  request.say_start(target.root(), prepared->destination->describe());
  say_who_is_missing(prepared->collector->scope().refused, request);
  if (request.control)
    request.control->say_ready(arena_of(prepared->collector->target_environment()), request.vain);
  const int status = supervise(*prepared, target, request, inbox);
  if (request.control)
    request.control->say(DDPROF_CONTROL_ENDED, status == 0 ? "" : "not all profiles were written or sent");
  return status;
}

}  // namespace ddprof
