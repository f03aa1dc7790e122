#pragma once

// For tests: a server on loopback that answers with whatever bytes a test wants, and can behave badly.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace ddprof {

// Not open when nobody listens.
inline UniqueFd connect_to_loopback(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

class RawServer {
 public:
  // One connection: what was asked, and how to answer.
  class Client {
   public:
    explicit Client(int fd) : fd_(fd) { read_request(); }
    [[nodiscard]] const std::string& request() const { return request_; }
    // False once the other side is gone.
    bool send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
      }
      return true;
    }
    // What follows the header, as long as it says.
    std::string receive_body() const {
      constexpr std::string_view kLength = "Content-Length: ";
      std::string body = request_.substr(request_.find("\r\n\r\n") + 4);
      const std::size_t at = request_.find(kLength);
      const std::size_t size = at == std::string::npos ? 0 : std::stoul(request_.substr(at + kLength.size()));
      std::array<char, 4096> buffer;
      while (body.size() < size) {
        const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
        if (count <= 0) break;
        body.append(buffer.data(), static_cast<std::size_t>(count));
      }
      return body;
    }
    // Carries bytes both ways between the other side and a port here, until one of them ends.
    void relay_to(std::uint16_t port) const {
      const UniqueFd server = connect_to_loopback(port);
      std::array<pollfd, 2> sides = {{{fd_, POLLIN, 0}, {server.get(), POLLIN, 0}}};
      std::array<char, 4096> buffer;
      while (::poll(sides.data(), sides.size(), -1) > 0) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
          if (sides[i].revents == 0) continue;
          const ssize_t count = ::recv(sides[i].fd, buffer.data(), buffer.size(), 0);
          if (count <= 0) return;
          ::send(sides[1 - i].fd, buffer.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL);
        }
      }
    }
    void wait_until_gone() const {
      std::array<char, 512> ignored;
      while (::recv(fd_, ignored.data(), ignored.size(), 0) > 0) {
      }
    }

   private:
    void read_request() {
      std::array<char, 4096> buffer;
      // The first words of TLS are no request, and never have its end.
      while (request_.find("\r\n\r\n") == std::string::npos && !request_.starts_with('\x16')) {
        const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
        if (count <= 0) return;
        request_.append(buffer.data(), static_cast<std::size_t>(count));
      }
    }

    int fd_;
    std::string request_;
  };
  using Serve = std::function<void(const Client&)>;

  RawServer(Serve serve, const std::string& socket) : serve_(std::move(serve)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 16) != 0)
      throw std::runtime_error("no server at " + socket);
    thread_ = std::thread([this] { run(); });
  }
  explicit RawServer(Serve serve) : serve_(std::move(serve)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
        ::getsockname(listener_.get(), generic, &size) != 0)
      throw std::runtime_error("no server on loopback");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  // With a canned answer.
  explicit RawServer(std::string answer)
      : RawServer([answer](const Client& client) { client.send(answer); }) {}
  ~RawServer() { close(); }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] std::string url(std::string_view path = "") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }
  [[nodiscard]] std::vector<std::string> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  // From now on, connections are refused.
  void close() {
    if (!thread_.joinable()) return;
    is_closing_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    {
      std::lock_guard lock(mutex_);
      if (current_ >= 0) ::shutdown(current_, SHUT_RDWR);
    }
    thread_.join();
    listener_.reset();
  }

 private:
  void run() {
    while (!is_closing_) {
      const UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.is_open()) continue;
      set_current(fd.get());
      const Client client(fd.get());
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(client.request());
      }
      if (!is_closing_) serve_(client);
      set_current(-1);
    }
  }
  void set_current(int fd) {
    std::lock_guard lock(mutex_);
    current_ = fd;
    if (fd >= 0 && is_closing_) ::shutdown(fd, SHUT_RDWR);
  }

  Serve serve_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_closing_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  int current_ = -1;
  std::thread thread_;
};

inline std::string http_answer(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace ddprof
