#include "runtime/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "runtime/in_child_fixture.hpp"

namespace ddprof {
namespace {

TEST(StandardStreams, ThatWereClosedAreFilledUntilExec) {
  EXPECT_EQ(in_child([] {
              ::close(STDIN_FILENO);
              ::close(STDERR_FILENO);
              fill_closed_standard_streams();
              std::string flags;
              for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                flags += std::to_string(::fcntl(stream, F_GETFD));
              return flags;  // 1 is FD_CLOEXEC
            }),
            "101");
}

TEST(StandardStreams, TakeAMessageThatNobodyReads) {
  EXPECT_EQ(in_child([]() -> std::string {
              std::array<int, 2> pipe{};
              if (::pipe(pipe.data()) != 0 || ::dup2(pipe[1], STDERR_FILENO) < 0) return "no pipe";
              ::close(pipe[0]);
              ::signal(SIGPIPE, SIG_DFL);
              print_to_standard_error("anybody?\n");
              sigset_t pending{};
              ::sigpending(&pending);
              return ::sigismember(&pending, SIGPIPE) == 1 ? "a signal is pending" : "alive";
            }),
            "alive");
}

TEST(StandardStreams, KeepASignalThatWasPendingBefore) {
  EXPECT_EQ(in_child([]() -> std::string {
              sigset_t broken{};
              ::sigemptyset(&broken);
              ::sigaddset(&broken, SIGPIPE);
              ::sigprocmask(SIG_BLOCK, &broken, nullptr);
              ::raise(SIGPIPE);
              print_to_standard_error("");
              sigset_t pending{};
              ::sigpending(&pending);
              return ::sigismember(&pending, SIGPIPE) == 1 ? "kept" : "lost";
            }),
            "kept");
}

TEST(Descriptors, AreClosedInARange) {
  EXPECT_EQ(in_child([] {
              for (int fd : {100, 101, 102, 103}) ::dup2(STDIN_FILENO, fd);
              close_descriptors(101, 102);
              close_descriptors(7, 6);  // an empty range
              std::string open;
              for (int fd : {100, 101, 102, 103}) open += ::fcntl(fd, F_GETFD) >= 0 ? 'o' : '-';
              return open;
            }),
            "o--o");
}

}  // namespace
}  // namespace ddprof
