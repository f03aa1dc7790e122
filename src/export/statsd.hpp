#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "export/statsd_socket.hpp"

namespace ddprof {

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

  // Lines that could not be delivered, as far as is known: nobody acknowledges a datagram.
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
