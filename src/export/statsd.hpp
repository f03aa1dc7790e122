#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// The profiler's own metrics, to a DogStatsD server. Lines are gathered into datagrams; nothing here waits,
// and what cannot be delivered is dropped and counted: metrics never hold up profiling. Belongs to one
// thread.
class StatsdClient {
 public:
  // Fails only on an address that makes no sense: a server that is not there yet may come. `tags`, such as
  // "service:shop", go with every line.
  static Result<StatsdClient> open(std::string_view where, const std::vector<std::string>& tags = {});

  void gauge(std::string_view name, double value);
  void count(std::string_view name, std::int64_t value);
  // Sends what was gathered.
  void flush();

  // Lines that could not be delivered, as far as is known: datagrams are not acknowledged.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  // The first failure, once: for the one line that tells the user.
  [[nodiscard]] std::optional<Error> take_error();

 private:
  StatsdClient(StatsdSocket socket, std::string tags) : socket_(std::move(socket)), tags_(std::move(tags)) {}

  void add(const std::string& line);
  void drop(std::uint64_t lines, Error error);

  StatsdSocket socket_;
  std::string tags_;  // "|#service:shop,env:prod", or empty
  std::string datagram_;
  std::uint64_t lines_ = 0;  // in it
  std::uint64_t dropped_ = 0;
  std::optional<Error> error_;
  bool has_failed_ = false;
};

}  // namespace ddprof
