#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "export/addresses.hpp"

namespace ddprof {

struct SocketEndpoint {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// Sends datagrams and never waits: not for room in a queue, not for a name server. The receiver may be absent
// at first, go away and come back.
class StatsdSocket {
 public:
  // Starts to look the host up, if it is a name.
  explicit StatsdSocket(StatsdAddress address);

  // A failure means that this datagram (with UDP also: an earlier one) did not arrive.
  Result<void> send(std::string_view datagram);
  // What the agent's buffer takes, and with UDP what crosses a network in one piece.
  [[nodiscard]] std::size_t max_bytes() const { return address_.is_unix() ? 8192 : 1432; }

 private:
  struct LookUp;  // shared with the thread that waits for the answer

  static Result<SocketEndpoint> look_up(const StatsdAddress& address, int flags);
  void start_look_up();
  Result<void> find_endpoint();
  Result<void> connect();
  Result<void> reconnect_and_send(std::string_view datagram);

  StatsdAddress address_;
  std::optional<SocketEndpoint> endpoint_;
  std::shared_ptr<LookUp> look_up_;
  UniqueFd fd_;
};

}  // namespace ddprof
