#include "runtime/call_apart.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/mounts.hpp"
#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "runtime/detached_process.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

namespace {

using SteadyClock = std::chrono::steady_clock;

// The first byte of an answer; an error has its code, its message and its hint behind it.
constexpr char kWorked = 'd', kDidNotWork = 'f', kHintBehind = '\0';

[[noreturn]] void work_and_answer(UniqueFd writer, const std::function<Result<void>()>& work) {
  // Who reads the user's pipes shall not wait for us.
  const auto needed = static_cast<unsigned>(writer.get());
  if (needed > 0) close_descriptors(0, needed - 1);
  close_descriptors(needed + 1);
  ::signal(SIGPIPE, SIG_IGN);
  const Result<void> done = work();
  std::string text(1, kWorked);
  if (!done)
    text =
        fmt::format("{}{}{}{}{}", kDidNotWork, static_cast<char>('0' + static_cast<int>(done.error().code)),
                    done.error().message, kHintBehind, done.error().hint);
  print_to(writer.get(), text);
  std::_Exit(0);
}

// Up to its end; nothing when that does not come in time.
std::optional<std::string> read_until_end(int fd, SteadyClock::time_point deadline) {
  std::string text;
  std::array<char, 1024> buffer;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    pollfd waiter{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? ::poll(&waiter, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::optional<Result<void>> call_apart(std::chrono::milliseconds patience,
                                       const std::function<Result<void>()>& work) {
  const auto deadline = SteadyClock::now() + patience;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return work();  // no descriptors: the work will say so
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::optional<std::string> text;
  const auto await_end = [&] {
    writer.reset();
    text = read_until_end(reader.get(), deadline);
    return text.has_value();
  };
  if (!run_detached([&] { work_and_answer(std::move(writer), work); }, await_end))
    return errno_error(errno, "fork");
  if (!text) return std::nullopt;
  if (text->starts_with(kWorked)) return Result<void>();
  if (text->size() < 2) return make_error(ErrorCode::failed, "a process of the profiler ended unexpectedly");
  const std::size_t end = std::min(text->find(kHintBehind), text->size());
  return with_hint({static_cast<ErrorCode>((*text)[1] - '0'), text->substr(2, end - 2)},
                   end < text->size() ? text->substr(end + 1) : "");
}

std::optional<Result<void>> ask_file_system(std::chrono::milliseconds patience,
                                            const std::function<Result<void>()>& work) {
  const std::string mounts = read_file("/proc/self/mountinfo").value_or(std::string());
  return may_hang(mounts) ? call_apart(patience, work) : work();
}

}  // namespace ddprof
