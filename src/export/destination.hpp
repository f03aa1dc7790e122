#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "process/process_identity.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// What leaves the machine at the end of a period: one profile of each kind.
struct Batch {
  struct Part {
    std::string kind;  // "cpu", "alloc"
    Profile profile;   // the names of its columns are those of no other kind
  };

  std::uint64_t sequence = 0;  // counts the batches of a run from 0
  bool is_last = false;        // of the run, as far as is known
  Nanoseconds start{}, end{};  // Unix time
  std::vector<Part> parts = {};
  // Whose the samples are: ProfileSample::process is a position here. The first is no process.
  std::vector<ProcessIdentity> processes = {};
  ProcessIdentity target = {};  // what the program that is profiled publishes of itself; empty for a host

  // One profile and its time.
  static Batch of(Profile profile, std::uint64_t sequence, std::string kind = "cpu");

  // All kinds as columns of one profile, as files have them. It is made in `space` when there are several.
  [[nodiscard]] const Profile& whole(Profile& space) const;
};

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
  // Called from another thread when there is no more time: waiting for a peer fails, now and from now on.
  virtual void give_up() {}
};

// Every batch to each of them, in their order: those that always answer, such as files, come first. One
// that fails does not keep it from the others.
class SeveralDestinations final : public Destination {
 public:
  explicit SeveralDestinations(std::vector<std::unique_ptr<Destination>> destinations)
      : destinations_(std::move(destinations)) {}

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] DeliveryCounters counters() const override;
  void give_up() override;

 private:
  std::vector<std::unique_ptr<Destination>> destinations_;
};

}  // namespace ddprof
