#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "export/batch.hpp"

namespace ddprof {

// What has become of a batch that is not lost.
enum class Delivery : std::uint8_t {
  arrived,
  waits,  // on the disk, until its peer answers
};

// Since the process began, but for what waits.
struct DeliveryCounters {
  std::uint64_t arrived = 0;  // uploads, those that had waited among them; a batch may be several
  std::uint64_t bytes = 0;    // of their bodies
  std::uint64_t retries = 0;
  std::uint64_t waiting = 0;  // now
  std::uint64_t waiting_bytes = 0;
  std::uint64_t dropped = 0;  // that had waited: too old, no room, unreadable, or refused in the end

  DeliveryCounters& operator+=(const DeliveryCounters& other);
};

// What is heard of profiles on their way. Each may be null.
struct Voice {
  std::function<void(const Error&)> say;               // a trouble, once until it has passed
  std::function<void(const std::string&)> say_notice;  // that it has passed
  std::function<void(const std::string&)> say_debug;   // each request, each file
  std::function<void(const Profile&)> on_written;      // the file of a whole run, each time it is written
};

// Where finished profiles go. Called from the finishing thread only, one batch after the other.
class Destination {
 public:
  virtual ~Destination() = default;
  // An error: the batch is lost to this destination.
  virtual Result<Delivery> send(const Batch& batch) = 0;
  // For the summary: the file, directory or address.
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual DeliveryCounters counters() const { return {}; }
  // Called from another thread when there is no more time: whoever waits for a peer fails, now and from now
  // on.
  virtual void give_up() {}
};

}  // namespace ddprof
