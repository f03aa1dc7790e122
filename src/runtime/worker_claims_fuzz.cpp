#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "runtime/worker.hpp"

// What a worker that was taken over can make its supervisor, and the next worker, read. Input: a byte that
// says how much of the rest is scribbled over the shared memory, in parts of 64 bytes; what follows comes
// through the channel, in packets that each begin with their length. What is in a note is the engine's:
// event_note_fuzz.

namespace {

using Bytes = std::span<const std::uint8_t>;

Bytes take(Bytes& from, std::size_t size) {
  const Bytes taken = from.first(std::min(size, from.size()));
  from = from.subspan(taken.size());
  return taken;
}

void read_shared_memory(Bytes bytes) {
  const auto shared = std::make_unique<ddprof::SharedState>();
  // The end is scribbled over too, where little input would not reach.
  for (std::size_t at = 0; !bytes.empty() && at < sizeof *shared; at += bytes.size())
    std::memcpy(reinterpret_cast<std::byte*>(shared.get()) + at, bytes.data(),
                std::min(bytes.size(), sizeof *shared - at));
  const ddprof::SessionHandover handover =
      ddprof::believed(shared->continuity.handover(), ddprof::monotonic_now(), ddprof::monotonic_now());
  shared->continuity.commit(handover);
  volatile std::size_t used = ddprof::describe(shared->fault).size() + handover.has_children;
  used = used + static_cast<std::size_t>(shared->continuity.back_by().count());
}

void send_packet(int channel, Bytes bytes, int fd) {
  std::string copy(bytes.begin(), bytes.end());
  iovec part{.iov_base = copy.data(), .iov_len = copy.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {  // twice, where one is expected
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof fd);
    for (std::size_t i = 0; i < 2; ++i) std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
  }
  ::sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void read_channel(Bytes bytes) {
  auto channel = ddprof::NoteChannel::open();
  if (!channel.ok()) return;
  const ddprof::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  while (!bytes.empty()) {
    const std::uint8_t length = take(bytes, 1).front();
    send_packet(channel->worker_end.get(), take(bytes, length & 0x7fU), length > 0x7f ? null.get() : -1);
    const ddprof::ReceivedNote received = ddprof::receive_note(channel->supervisor_end.get());
    volatile std::size_t used = 0;
    for (const std::byte byte : received.note()) used = used + std::to_integer<std::size_t>(byte);
  }
}

int next_descriptor() { return ddprof::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPart = 64;
  Bytes bytes(data, size);
  if (bytes.empty()) return 0;
  const std::size_t parts = take(bytes, 1).front();
  read_shared_memory(take(bytes, parts * kPart));
  const int next = next_descriptor();
  read_channel(bytes);
  if (next_descriptor() != next) __builtin_trap();  // one has stayed behind
  return 0;
}
