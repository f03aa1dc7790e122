#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "export/destination.hpp"
#include "export/peer.hpp"
#include "export/spool.hpp"
#include "export/verdict.hpp"

namespace ddprof {

struct UploadOptions {
  // A Datadog agent itself gives up after five seconds.
  static constexpr std::chrono::milliseconds kUsualPatience = std::chrono::seconds(10);

  std::chrono::milliseconds patience = kUsualPatience;  // with one batch and those that waited before it
  std::optional<Spool> spool;                           // where batches wait for their peer
  std::function<void(const Error&)> say;                // once per trouble, and not again until it has passed
};

// Posts each batch to a peer. What may pass is tried again, after a random pause that grows, or the one that
// the peer asks for, if there is time before the next batch. What nobody took waits in the spool, and goes
// first when the peer is back: batches arrive in order.
class UploadDestination final : public Destination {
 public:
  UploadDestination(Peer peer, UploadOptions options)
      : peer_(std::move(peer)), options_(std::move(options)) {}

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return peer_.place; }
  [[nodiscard]] DeliveryCounters counters() const override;
  void give_up() override { stop_.request_stop(); }

 private:
  using Clock = std::chrono::steady_clock;

  Result<Delivery> keep(const Parcel& parcel, Error trouble);
  void deliver_waiting(Clock::time_point end);
  [[nodiscard]] Verdict post(const Parcel& parcel, Clock::time_point end);
  [[nodiscard]] Verdict attempt(const Parcel& parcel, Clock::time_point end) const;
  [[nodiscard]] bool has_waiting() const { return options_.spool && options_.spool->state().parcels > 0; }
  // False when there would be no time left, or when told to give up.
  bool pause(const Verdict& verdict, int attempts, Clock::time_point end);
  void say_once(const Verdict& verdict);
  void publish_counters();

  Peer peer_;
  UploadOptions options_;
  std::set<std::string> said_;  // troubles that were told since a batch last arrived
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any never_;
  DeliveryCounters counters_;            // the sender's
  DeliveryCounters published_counters_;  // of everybody who asks
};

}  // namespace ddprof
