#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>

#include "base/ids.hpp"
#include "base/read_file.hpp"

namespace ddprof {

// A child that was executed with this environment and waits for its end. `next`: with which variable it is to
// become another program when it is told to.
class ExecutedChild {
 public:
  explicit ExecutedChild(const char* variable, const std::string& next = {}) {
    const std::string shell =
        next.empty() ? "echo; exec sleep 60" : "echo; kill -STOP $$; " + next + " exec sleep 60";
    std::array<int, 2> started{};
    EXPECT_EQ(::pipe(started.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(started[1], STDOUT_FILENO);
      const std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                              const_cast<char*>(shell.c_str()), nullptr};
      const std::array<char*, 2> environment = {const_cast<char*>(variable), nullptr};
      ::execve("/bin/sh", arguments.data(), environment.data());
      ::_exit(1);
    }
    char ready = 0;
    EXPECT_EQ(::read(started[0], &ready, 1), 1);
    ::close(started[0]);
    ::close(started[1]);
    while (!next.empty() ? !runs("sh") : !runs("sleep")) std::this_thread::yield();
  }
  ~ExecutedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ExecutedChild(const ExecutedChild&) = delete;
  ExecutedChild& operator=(const ExecutedChild&) = delete;

  void become_next() const {
    while (!runs("sleep")) ::kill(pid_, SIGCONT);
  }
  [[nodiscard]] Pid pid() const { return Pid{pid_}; }

 private:
  // In the midst of an exec there are neither arguments nor an environment.
  [[nodiscard]] bool runs(std::string_view program) const {
    const auto arguments = read_file(fmt::format("/proc/{}/cmdline", pid_));
    return !arguments || arguments->starts_with(program);
  }

  pid_t pid_ = -1;
};

}  // namespace ddprof
