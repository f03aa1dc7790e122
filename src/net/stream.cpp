#include "net/stream.hpp"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "base/call_within.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxAddresses = 8;

milliseconds left_until(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp(left, milliseconds(0), milliseconds(std::chrono::hours(1)));
}

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family = AF_UNSPEC;
};

Result<std::vector<SocketAddress>> look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (status != 0) return make_error(ErrorCode::not_found, "look up {}: {}", host, ::gai_strerror(status));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = list; each != nullptr && addresses.size() < kMaxAddresses;
       each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    auto& address = addresses.emplace_back();
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    address.family = each->ai_family;
  }
  ::freeaddrinfo(list);
  return addresses;
}

// getaddrinfo() has no deadline: it may wait for a dead name server for half a minute.
Result<std::vector<SocketAddress>> look_up_within(const std::string& host, std::uint16_t port,
                                                  Deadline deadline, const Waiter& waiter) {
  if (auto numeric = look_up(host, port, AI_NUMERICHOST)) return numeric;
  auto found = call_within(
      left_until(deadline), [host, port] { return look_up(host, port, 0); }, waiter.stop());
  if (!found) return make_error(ErrorCode::failed, "look up {}: no answer in time", host);
  return std::move(*found);
}

class SocketStream final : public Stream {
 public:
  SocketStream(UniqueFd fd, const Waiter& waiter) : fd_(std::move(fd)), waiter_(waiter) {}

  Result<std::size_t> read_some(std::span<std::byte> buffer, Deadline deadline) override {
    while (true) {
      const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return errno_error(errno, "receive");
      TRY(waiter_.wait(fd_.get(), POLLIN, deadline));
    }
  }

  Result<void> write_all(std::span<const std::byte> bytes, Deadline deadline) override {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        TRY(waiter_.wait(fd_.get(), POLLOUT, deadline));
      } else if (errno != EINTR) {
        return errno_error(errno, "send");
      }
    }
    return {};
  }

 private:
  UniqueFd fd_;
  const Waiter& waiter_;
};

Result<UniqueFd> connect_to(const SocketAddress& address, Deadline deadline, const Waiter& waiter) {
  UniqueFd fd(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return errno_error(errno, "make a socket");
  const int on = 1;
  if (address.family != AF_UNIX) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) == 0) return fd;
  if (errno != EINPROGRESS) return errno_error(errno, "connect");
  TRY(waiter.wait(fd.get(), POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return errno_error(error, "connect");
  return fd;
}

Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path || path.find('\0') != std::string::npos)
    return make_error(ErrorCode::invalid_argument, "connect to {}: not the path of a socket", path);
  path.copy(name.sun_path, path.size());
  SocketAddress address{.size = sizeof name, .family = AF_UNIX};
  std::memcpy(&address.bytes, &name, sizeof name);
  return address;
}

}  // namespace

struct Waiter::Wake {
  explicit Wake(const std::stop_token& stop)
      : event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        on_stop(stop, [this] { ::eventfd_write(event.get(), 1); }) {}
  UniqueFd event;
  std::stop_callback<std::function<void()>> on_stop;
};

Waiter::Waiter(std::stop_token stop) : stop_(std::move(stop)), wake_(std::make_unique<Wake>(stop_)) {}
Waiter::~Waiter() = default;

Result<void> Waiter::wait(int fd, short events, Deadline deadline) const {
  while (true) {
    if (stop_.stop_requested()) return make_error(ErrorCode::failed, "given up on request");
    const milliseconds left = left_until(deadline);
    if (left <= milliseconds(0)) return make_error(ErrorCode::failed, "no answer in time");
    std::array<pollfd, 2> wanted = {{{fd, events, 0}, {wake_->event.get(), POLLIN, 0}}};
    const int count = ::poll(wanted.data(), wanted.size(), static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) return errno_error(errno, "poll");
    if (count > 0 && wanted[0].revents != 0) return {};
  }
}

Result<std::unique_ptr<Stream>> connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline,
                                            const Waiter& waiter) {
  const std::vector<SocketAddress> addresses = TRY(look_up_within(host, port, deadline, waiter));
  Error last = make_error(ErrorCode::not_found, "look up {}: no address", host);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // An address that does not answer must leave time for the others.
    const auto share = left_until(deadline) / static_cast<long>(addresses.size() - i);
    auto fd = connect_to(addresses[i], std::chrono::steady_clock::now() + share, waiter);
    if (fd) return std::unique_ptr<Stream>(std::make_unique<SocketStream>(std::move(*fd), waiter));
    last = std::move(fd).error();
  }
  return last;
}

Result<std::unique_ptr<Stream>> connect_unix(const std::string& path, Deadline deadline,
                                             const Waiter& waiter) {
  const SocketAddress address = TRY(unix_address(path));
  UniqueFd fd = TRY(connect_to(address, deadline, waiter));
  return std::unique_ptr<Stream>(std::make_unique<SocketStream>(std::move(fd), waiter));
}

}  // namespace ddprof
