#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

using Deadline = std::chrono::steady_clock::time_point;

// Waits for a descriptor, but never past a deadline or a request to stop.
class Waiter {
 public:
  explicit Waiter(std::stop_token stop);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // `events` are those of poll(2).
  [[nodiscard]] Result<void> wait(int fd, short events, Deadline deadline) const;
  [[nodiscard]] const std::stop_token& stop() const { return stop_; }

 private:
  struct Wake;
  std::stop_token stop_;
  std::unique_ptr<Wake> wake_;
};

// A connection that carries bytes both ways. No call outlasts its deadline.
class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte, or none at the end.
  virtual Result<std::size_t> read_some(std::span<std::byte> buffer, Deadline deadline) = 0;
  virtual Result<void> write_all(std::span<const std::byte> bytes, Deadline deadline) = 0;
};

// The waiter must outlive the stream.
Result<std::unique_ptr<Stream>> connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline,
                                            const Waiter& waiter);
// To the stream socket of a process on this machine.
Result<std::unique_ptr<Stream>> connect_unix(const std::string& path, Deadline deadline,
                                             const Waiter& waiter);

}  // namespace ddprof
