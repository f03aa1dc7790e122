#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "export/answer.hpp"
#include "export/destination.hpp"
#include "export/peer.hpp"
#include "export/spool.hpp"

namespace ddprof {

struct UploadOptions {
  // A Datadog agent itself gives up after five seconds.
  static constexpr std::chrono::milliseconds kUsualPatience = std::chrono::seconds(10);

  std::chrono::milliseconds patience = kUsualPatience;  // with one batch and those that waited before it
  std::optional<Spool> spool;                           // where batches wait for their peer
  Voice voice;
};

// Posts each batch to a peer. What may pass is tried again, after a random pause that grows, or the one that
// the peer asks for, if there is time before the next batch. What was not taken waits in the spool, and goes
// first when the peer is back: batches arrive in order, and so do the requests of each. Who asked for a
// longer pause gets it, in the spool.
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

  using Requests = std::span<const UploadRequest>;

  // What became of several requests: an error if one is lost, the first; they wait if one does.
  class Sum {
   public:
    void add(Result<Delivery> delivery);
    [[nodiscard]] Result<Delivery> total() &&;

   private:
    std::optional<Error> first_error_;
    std::uint64_t lost_ = 0, requests_ = 0;
    Delivery least_ = Delivery::arrived;
  };

  // Behind those that wait, which are tried first.
  void send_behind_spooled(Requests requests, Clock::time_point end, Sum& sum);
  // One after the other. Where the peer fails, the rest waits: it is not asked as often as there are
  // requests.
  void send_in_order(Requests requests, Clock::time_point end, Sum& sum);
  Result<Delivery> spool_after_failure(const UploadRequest& request, const Answer& answer);
  Result<Delivery> spool_or_send(const UploadRequest& request, Clock::time_point end);
  Result<Delivery> send_without_spool(const UploadRequest& request, Clock::time_point end, const Error& why);
  // Whether others wait, or the peer wants to be left alone for a while.
  [[nodiscard]] bool must_wait() const;
  // Whether there is too little time to begin with another request.
  [[nodiscard]] bool is_late(Clock::time_point end) const;
  Result<std::string> add_to_spool(const UploadRequest& request);
  // Adds what became of the requests of these names.
  void deliver_spooled(const std::set<std::string>& own, Clock::time_point end, Sum& sum);
  [[nodiscard]] Answer post(const UploadRequest& request, Clock::time_point end);
  [[nodiscard]] Answer attempt(const UploadRequest& request, Clock::time_point end) const;
  // False when there would be no time left, or when told to give up.
  bool pause(const Answer& answer, int attempts, Clock::time_point end);
  // Whether the peer has failed over this request, and over no other before it, so often that it is to blame.
  bool is_suspect(const std::string& name, const Answer& answer);
  void tell(const Answer& answer);
  bool tell_once(const std::string& key, const Error& trouble);
  void tell_when_over();
  void publish_counters();

  Peer peer_;
  UploadOptions options_;
  Clock::time_point not_before_{};  // when the peer wants to be asked again

  std::map<std::string, Clock::time_point> last_told_;  // troubles, and when they were told last
  std::set<std::string> troubles_;                      // since a batch last arrived
  bool is_outage_told_ = false;
  std::uint64_t arrived_late_ = 0;  // from the spool, since the outage began
  std::string first_name_;          // of the request that the peer failed over
  int first_failures_ = 0;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  DeliveryCounters counters_;            // the sender's
  DeliveryCounters published_counters_;  // for other threads
};

}  // namespace ddprof
