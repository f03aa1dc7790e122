#include "session/finisher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

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
  period.sequence = sequence;
  return period;
}

TEST(Finisher, EndsAlthoughAPeerHangs) {
  HungPeer peer;
  Continuity continuity;
  Finisher finisher(peer, {.is_enabled = false}, continuity, std::chrono::milliseconds(10));
  for (std::uint64_t i = 0; i < 3; ++i) finisher.post_period(empty_period(i));
  finisher.finish();
  EXPECT_EQ(finisher.outcome().failed, 3U);
  EXPECT_EQ(finisher.outcome().sent, 0U);
}

TEST(Finisher, DropsTheOldestOfMoreThanFive) {
  HungPeer peer;
  Continuity continuity;
  Finisher finisher(peer, {.is_enabled = false}, continuity);
  finisher.post_period(empty_period(0));
  peer.is_asked.wait(false);  // one is on its way, the queue is empty
  for (std::uint64_t i = 1; i <= Finisher::kQueueLength + 2; ++i) finisher.post_period(empty_period(i));
  EXPECT_EQ(finisher.outcome().dropped, 2U);
  peer.give_up();
}

TEST(Finisher, SendsAllInTheirOrderBeforeItEnds) {
  PatientShelf shelf;
  Continuity continuity;
  Finisher finisher(shelf, {.is_enabled = false}, continuity);
  for (std::uint64_t i = 0; i < Finisher::kQueueLength; ++i) finisher.post_period(empty_period(i));
  finisher.finish();
  EXPECT_THAT(shelf.sequences, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(shelf.was_given_up);
}

}  // namespace
}  // namespace ddprof
