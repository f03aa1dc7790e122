#include "runtime/worker.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>

namespace ddprof {

namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class NoteChannelTest : public testing::Test {
 protected:
  // With the same descriptor twice, where a note has it once.
  void send(std::string text, int fd) {
    iovec part{.iov_base = text.data(), .iov_len = text.size()};
    const std::array<int, 2> fds{fd, fd};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
    ASSERT_EQ(::sendmsg(channel_.worker_end.get(), &message, 0), static_cast<ssize_t>(text.size()));
  }
  ReceivedNote receive() { return receive_note(channel_.supervisor_end.get()); }

  NoteChannel channel_ = std::move(NoteChannel::open()).value();
  UniqueFd null_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
};

TEST_F(NoteChannelTest, CarriesANoteAndItsDescriptor) {
  const auto sent = std::to_array({std::byte{7}, std::byte{0}, std::byte{9}});
  send_note(channel_.worker_end.get(), sent, null_.get());
  const ReceivedNote received = receive();
  ASSERT_EQ(received.kind, ReceivedNote::Kind::note);
  EXPECT_TRUE(std::ranges::equal(received.note(), sent));
  EXPECT_TRUE(received.fd.is_open());
  EXPECT_EQ(receive().kind, ReceivedNote::Kind::nothing_yet);
}

TEST_F(NoteChannelTest, TakesOneDescriptorAndLeaksNone) {
  const std::size_t before = open_descriptors();
  send(std::string(Handover::kMaxNoteBytes, '\0'), null_.get());
  send(std::string(Handover::kMaxNoteBytes + 1, '\0'), null_.get());
  EXPECT_EQ(receive().kind, ReceivedNote::Kind::note);
  EXPECT_EQ(receive().kind, ReceivedNote::Kind::nothing_yet);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(NoteChannelTest, EndsWithTheFarewellOfAWorkerWhoseThreadsKeepItOpen) {
  const UniqueFd held_by_a_thread(::dup(channel_.worker_end.get()));
  ::shutdown(channel_.worker_end.get(), SHUT_RDWR);
  EXPECT_EQ(receive().kind, ReceivedNote::Kind::closed);
}

}  // namespace

}  // namespace ddprof
