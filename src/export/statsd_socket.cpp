#include "export/statsd_socket.hpp"

#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/call_within.hpp"

namespace ddprof {

// The answer of getaddrinfo(), which may take half a minute and cannot be cancelled.
struct StatsdSocket::LookUp {
  std::mutex mutex;
  std::optional<Result<SocketEndpoint>> answer;
};

StatsdSocket::StatsdSocket(StatsdAddress address) : address_(std::move(address)) {
  if (address_.is_unix()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address_.path.data(),
                std::min(address_.path.size(), sizeof name.sun_path - 1));
    endpoint_.emplace();
    std::memcpy(&endpoint_->bytes, &name, sizeof name);
    endpoint_->size = sizeof name;
  } else if (auto numeric = look_up(address_, AI_NUMERICHOST)) {
    endpoint_ = *numeric;
  } else {
    start_look_up();
  }
}

Result<SocketEndpoint> StatsdSocket::look_up(const StatsdAddress& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (status != 0)
    return make_error(ErrorCode::not_found, "look up {}: {}", address.host, ::gai_strerror(status));
  SocketEndpoint endpoint;
  endpoint.size = std::min<socklen_t>(list->ai_addrlen, sizeof endpoint.bytes);
  std::memcpy(&endpoint.bytes, list->ai_addr, endpoint.size);
  ::freeaddrinfo(list);
  return endpoint;
}

void StatsdSocket::start_look_up() {
  auto shared = std::make_shared<LookUp>();
  std::thread thread = start_quiet_thread([shared, address = address_] {
    Result<SocketEndpoint> answer = look_up(address, 0);
    std::lock_guard lock(shared->mutex);
    shared->answer.emplace(std::move(answer));
  });
  if (!thread.joinable()) return;
  thread.detach();
  look_up_ = std::move(shared);
}

// An answer that is not there yet, or a bad one, is asked for again when there is something else to send.
Result<void> StatsdSocket::find_endpoint() {
  if (!look_up_) start_look_up();
  if (!look_up_) return make_error(ErrorCode::exhausted, "look up {}: no thread for it", address_.host);
  std::unique_lock lock(look_up_->mutex);
  if (!look_up_->answer) return make_error(ErrorCode::failed, "look up {}: no answer yet", address_.host);
  Result<SocketEndpoint> answer = *look_up_->answer;
  lock.unlock();
  look_up_.reset();
  endpoint_ = TRY(std::move(answer));
  return {};
}

Result<void> StatsdSocket::connect() {
  if (!endpoint_) TRY(find_endpoint());
  UniqueFd fd(::socket(endpoint_->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return errno_error(errno, "make a socket for " + address_.text());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&endpoint_->bytes), endpoint_->size) != 0)
    return errno_error(errno, "connect to " + address_.text());
  fd_ = std::move(fd);
  return {};
}

Result<void> StatsdSocket::send(std::string_view datagram) {
  if (!fd_.is_open()) TRY(connect());
  if (::send(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  Error error = errno_error(errno, "send to " + address_.text());
  if (errno == EAGAIN || errno == ENOBUFS) return error;
  // The receiver was started anew; or, with UDP, the last datagram came back: it is lost, this one may
  // arrive.
  fd_.reset();
  auto again = reconnect_and_send(datagram);
  if (again && !address_.is_unix()) return error;
  return again;
}

Result<void> StatsdSocket::reconnect_and_send(std::string_view datagram) {
  TRY(connect());
  if (::send(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  Error error = errno_error(errno, "send to " + address_.text());
  fd_.reset();
  return error;
}

}  // namespace ddprof
