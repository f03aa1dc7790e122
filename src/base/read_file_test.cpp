#include "base/read_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

void write_to(int fd, std::string_view text) {
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// Standard input is a pipe while this lives.
class PipedInput {
 public:
  PipedInput() : previous_(::dup(STDIN_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    writer = UniqueFd(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ~PipedInput() { ::dup2(previous_.get(), STDIN_FILENO); }
  PipedInput(const PipedInput&) = delete;
  PipedInput& operator=(const PipedInput&) = delete;

  UniqueFd writer;

 private:
  UniqueFd previous_;
};

// The reader finds the pipe empty in between: each part is written after the one before has been read.
void write_in_parts(UniqueFd writer) {
  for (const std::string_view part : {"one ", "two ", "three"}) {
    int unread = 1;
    while (::ioctl(writer.get(), FIONREAD, &unread) == 0 && unread > 0) std::this_thread::yield();
    write_to(writer.get(), part);
  }
}

TEST(ReadInput, WaitsForAWriterThatIsSlower) {
  for (const std::string name : {"-", "/dev/stdin"}) {
    PipedInput input;
    std::thread writer(write_in_parts, std::move(input.writer));
    const auto text = read_input(name, 100);
    writer.join();
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, "one two three");
  }
}

TEST(ReadInput, WaitsOnADescriptorThatAnotherProcessMadeNonBlocking) {
  PipedInput input;
  ASSERT_EQ(::fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK), 0);
  std::thread writer(write_in_parts, std::move(input.writer));
  const auto text = read_input("-", 100);
  writer.join();
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "one two three");
}

TEST(ReadInput, ReadsAFifo) {
  ScratchFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { write_in_parts(UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC))); });
  const auto text = read_input(path, 100);
  writer.join();
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "one two three");
}

TEST(ReadInput, StopsAtItsLimit) {
  PipedInput input;
  write_to(input.writer.get(), "more than that");
  const auto text = read_input("-", 4);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "read standard input: larger than 4 bytes");
}

TEST(ReadPieces, AddUpToTheFile) {
  const ScratchFolder folder;
  const std::string path = folder.path("large"), content(100'000, 'x');
  folder.write("large", content);
  std::string pieces;
  ASSERT_TRUE(read_pieces(path, [&](std::string_view piece) { pieces += piece; }).ok());
  EXPECT_EQ(pieces, content);
  EXPECT_FALSE(read_pieces(path + ".missing", [](std::string_view) {}).ok());
}

TEST(ReadFile, DoesNotWaitForTheWriterOfAFifo) {
  ScratchFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto nothing = read_file(path);  // no writer: empty
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, "");
  const UniqueFd silent(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(read_file(path));  // a writer that writes nothing
}

}  // namespace
}  // namespace ddprof
