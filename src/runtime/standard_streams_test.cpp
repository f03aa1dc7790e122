#include "runtime/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
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

TEST(StandardStreams, TakeAMessageWithoutAReader) {
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

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  // All that is in it; "end" behind it when no writer is left.
  [[nodiscard]] std::string read() const {
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    if (count < 0) return "";
    return count == 0 ? "end" : std::string(buffer.data(), static_cast<std::size_t>(count));
  }

  UniqueFd reader, writer;
};

// What a process beside this one does that has let go of the descriptor.
void print_from_beside(const UserStream& stream, std::string_view text) {
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueFd null = open_nothing();
    ::dup2(null.get(), stream.descriptor());
    stream.print(text);
    std::_Exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(UserStream, PrintsToAPipeThatItDoesNotHold) {
  Pipe pipe;
  const UserStream stream(pipe.writer.get());
  EXPECT_FALSE(stream.may_be_held());
  stream.print("in front\n");
  EXPECT_EQ(pipe.read(), "in front\n");
  print_from_beside(stream, "beside\n");
  EXPECT_EQ(pipe.read(), "beside\n");
  pipe.writer.reset();
  EXPECT_EQ(pipe.read(), "end");
}

TEST(UserStream, IsSilentWhenTheProgramHasPutSomethingElseInItsPlace) {
  Pipe before, after;
  const UserStream stream(before.writer.get());
  const UniqueFd kept(::fcntl(before.writer.get(), F_DUPFD_CLOEXEC, 100));
  ::dup2(after.writer.get(), before.writer.get());
  print_from_beside(stream, "beside\n");
  EXPECT_EQ(before.read(), "");
  EXPECT_EQ(after.read(), "");
}

TEST(UserStream, NeverWaitsForAReader) {
  Pipe pipe;
  const UserStream stream(pipe.writer.get());
  const std::string page(4096, 'x');
  while (::write(pipe.writer.get(), page.data(), page.size()) > 0) {
  }
  print_from_beside(stream, "beside\n");
  pipe.reader.reset();
  print_from_beside(stream, "beside\n");
  stream.print("in front\n");
}

TEST(UserStream, MayHoldAFileAndTheJournalButNoOtherSocket) {
  const ScratchFolder folder;
  const UniqueFd file(::open(folder.path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(UserStream(file.get()).may_be_held());
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd one(ends[0]), other(ends[1]);
  EXPECT_FALSE(UserStream(one.get()).may_be_held());
  struct stat status {};
  ASSERT_EQ(::fstat(one.get(), &status), 0);
  ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", status.st_dev, status.st_ino).c_str(), 1);
  EXPECT_TRUE(UserStream(one.get()).may_be_held());
  EXPECT_FALSE(UserStream(other.get()).may_be_held());
  ::unsetenv("JOURNAL_STREAM");
}

TEST(UserStream, OfAClosedDescriptorPrintsNothing) { UserStream(1000).print("not heard\n"); }

}  // namespace

}  // namespace ddprof
