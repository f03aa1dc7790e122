#include "runtime/note_channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

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
