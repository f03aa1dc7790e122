#include "session/finisher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "export/destination.hpp"

namespace ddprof {
namespace {

// A peer that never answers: a send ends when it is told to give up.
class HungPeer final : public Destination {
 public:
  Result<Delivery> send(const Batch&) override {
    is_asked = true;
    is_asked.notify_all();
    given_up_.wait();
    return make_error(ErrorCode::failed, "no answer");
  }
  [[nodiscard]] std::string describe() const override { return "hung"; }
  void give_up() override { gives_up.set_value(); }

  std::atomic<bool> is_asked{false};
  std::promise<void> gives_up;

 private:
  std::shared_future<void> given_up_ = gives_up.get_future().share();
};

class PatientShelf final : public Destination {
 public:
  Result<Delivery> send(const Batch& batch) override {
    sequences.push_back(batch.sequence);
    return Delivery::arrived;
  }
  [[nodiscard]] std::string describe() const override { return "shelf"; }
  void give_up() override { was_given_up = true; }

  std::vector<std::uint64_t> sequences;
  bool was_given_up = false;
};

ClosedPeriod empty_period(std::uint64_t sequence) {
  ClosedPeriod period;
  period.times.sequence = sequence;
  return period;
}

// Sends to a destination, as a session does, without names.
class Sender {
 public:
  explicit Sender(Destination& destination, std::chrono::milliseconds patience = Finisher::kLastPatience)
      : finisher({.finish = [this, &destination](const ClosedPeriod& period) { send(destination, period); },
                  .give_up = [&destination] { destination.give_up(); }},
                 patience) {}

  std::uint64_t sent = 0, failed = 0;
  Finisher finisher;

 private:
  void send(Destination& destination, const ClosedPeriod& period) {
    finisher.begin_sending();
    ++(destination.send({.sequence = period.times.sequence}) ? sent : failed);
    finisher.end_sending();
  }
};

TEST(Finisher, EndsAlthoughAPeerHangs) {
  HungPeer peer;
  Sender sender(peer, std::chrono::milliseconds(10));
  for (std::uint64_t i = 0; i < 3; ++i) sender.finisher.post_period(empty_period(i));
  sender.finisher.finish();
  EXPECT_EQ(sender.failed, 3U);
  EXPECT_EQ(sender.sent, 0U);
}

TEST(Finisher, DropsTheOldestOfMoreThanFive) {
  HungPeer peer;
  Sender sender(peer);
  sender.finisher.post_period(empty_period(0));
  peer.is_asked.wait(false);  // one is on its way, the queue is empty
  for (std::uint64_t i = 1; i <= Finisher::kQueueLength + 2; ++i)
    sender.finisher.post_period(empty_period(i));
  EXPECT_EQ(sender.finisher.dropped(), 2U);
  EXPECT_EQ(sender.finisher.queued(), Finisher::kQueueLength);
  peer.give_up();
}

TEST(Finisher, SendsAllInTheirOrderBeforeItEnds) {
  PatientShelf shelf;
  Sender sender(shelf);
  for (std::uint64_t i = 0; i < Finisher::kQueueLength; ++i) sender.finisher.post_period(empty_period(i));
  sender.finisher.finish();
  EXPECT_THAT(shelf.sequences, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(shelf.was_given_up);
}

}  // namespace
}  // namespace ddprof
