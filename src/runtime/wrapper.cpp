#include "runtime/wrapper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/unique_fd.hpp"
#include "runtime/detached_process.hpp"
#include "runtime/program.hpp"
#include "runtime/standard_streams.hpp"
#include "runtime/supervisor.hpp"

namespace ddprof {

namespace {

// The target never waits longer than this for its profiler.
constexpr int kReadyTimeoutMilliseconds = 2000;
constexpr std::string_view kReady =
    "ready ";                        // and where profiles go, and what the target's environment needs
constexpr char kHintFollows = '\0';  // after the message of an error

// The daemon keeps nothing of the user's but what it prints to, and that only if its end is not waited for:
// the reader of our standard output through a pipe must see it end when the target ends.
void let_go_of_the_users_descriptors(int keep, const ProfilingRequest& request) {
  const bool keep_output = static_cast<bool>(request.session.observer.on_sample);
  UniqueFd null = open_nothing();
  ::dup2(null.get(), STDIN_FILENO);
  for (int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_terminal = stream == STDERR_FILENO && ::isatty(stream) == 1;  // for the summary
    const bool is_log = request.log_stream == stream && UserStream(stream).may_be_held();
    if (!keep_output && !is_terminal && !is_log) ::dup2(null.get(), stream);
  }
  null.reset();
  close_descriptors(STDERR_FILENO + 1, static_cast<unsigned>(keep) - 1);
  close_descriptors(static_cast<unsigned>(keep) + 1);
}

void tell(int fd, std::string_view message) {
  // If the reader has given up, so be it: the target runs already.
  [[maybe_unused]] ssize_t written = ::write(fd, message.data(), message.size());
}

// The life of the profiler beside the target.
[[noreturn]] void run_beside(Pid target, UniqueFd ready, ProfilingRequest request) {
  ::setsid();
  reset_signals();
  let_go_of_the_users_descriptors(ready.get(), request);
  SignalInbox inbox({SIGTERM, SIGINT, SIGUSR1});
  const Target wrapped = Target::command(target);
  auto limited = apply_limits(request);
  auto prepared = limited ? prepare(wrapped, request) : Result<PreparedProfiling>(std::move(limited).error());
  if (!prepared) {
    tell(ready.get(), prepared.error().message + kHintFollows + prepared.error().hint);
    ready.reset();  // by hand: a thread that hangs in a file system keeps descriptors open beyond our end
    std::_Exit(1);
  }
  tell(ready.get(), std::string(kReady) + prepared->destination->describe() +
                        join_environment(prepared->collector->target_environment()));
  ready.reset();
  std::_Exit(supervise(*prepared, wrapped, request, inbox));
}

// Reads what the profiler has to say before the target starts: that it is ready, or why not.
std::string wait_until_ready(int fd) {
  std::string message;
  std::array<char, 1024> buffer;
  while (true) {
    pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
    int count = ::poll(&waiter, 1, kReadyTimeoutMilliseconds);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "the profiler did not start in time";
    ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return message.empty() ? "the profiler ended unexpectedly" : message;
    message.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Error not_profiled(const std::string& answer) {
  const std::size_t end = std::min(answer.find(kHintFollows), answer.size());
  return with_hint(make_error(ErrorCode::failed, "running without profiling: {}", answer.substr(0, end)),
                   end < answer.size() ? answer.substr(end + 1) : "");
}

// With init the kernel ends every process of the namespace, at once.
Error no_last_profile() {
  return with_hint(make_error(ErrorCode::unsupported,
                              "the program is init of its PID namespace and takes the profiler with it "
                              "before the profile is written"),
                   "ddprof record, or --output FOLDER for a profile of each period");
}

}  // namespace

int run_wrapped(const std::vector<std::string>& program, ProfilingRequest request) {
  if (auto refused = refuse_to_run(program[0], request.privileges, request.say_error)) return *refused;
  std::array<int, 2> pipe{};
  std::string answer = "cannot make a pipe";
  if (::pipe2(pipe.data(), O_CLOEXEC) == 0) {
    UniqueFd reader(pipe[0]);
    UniqueFd writer(pipe[1]);
    Pid target{::getpid()};
    DetachedProcess profiler =
        start_detached([&] { run_beside(target, std::move(writer), std::move(request)); });
    answer = profiler.silent_child < 0 ? errno_error(errno, "fork").message : "";
    writer.reset();
    if (answer.empty()) answer = wait_until_ready(reader.get());
    if (!answer.starts_with(kReady)) end_silent_child(profiler);
  }
  if (answer.starts_with(kReady)) {
    const std::size_t end = std::min(answer.find('\0'), answer.size());
    request.say_start(Pid{::getpid()}, answer.substr(kReady.size(), end - kReady.size()));
    add_to_environment(split_environment(std::string_view(answer).substr(end)));
    if (::getpid() == 1 && !request.session.periods.length) request.say_error(no_last_profile());
  } else {
    request.say_error(not_profiled(answer));
  }
  return exec_limited(program, request.privileges, request.say_error);
}

}  // namespace ddprof
