#include "export/destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

class Shelf final : public Destination {
 public:
  Shelf(std::string name, bool is_full, std::vector<std::string>& log, bool is_slow = false)
      : name_(std::move(name)), is_full_(is_full), is_slow_(is_slow), log_(log) {}
  Result<Delivery> send(const Batch& batch) override {
    log_.push_back(fmt::format("{} {}", name_, batch.sequence));
    if (is_full_) return make_error(ErrorCode::exhausted, "{}: full", name_);
    return is_slow_ ? Delivery::waits : Delivery::arrived;
  }
  [[nodiscard]] DeliveryCounters counters() const override {
    return {.arrived = 1, .bytes = 2, .retries = 3, .waiting = 4, .waiting_bytes = 5, .dropped = 6};
  }
  [[nodiscard]] std::string describe() const override { return name_; }
  void give_up() override { log_.push_back(name_ + " given up"); }

 private:
  std::string name_;
  bool is_full_;
  bool is_slow_;
  std::vector<std::string>& log_;
};

TEST(SeveralDestinations, SendsToAllEvenIfOneFails) {
  std::vector<std::string> log;
  std::vector<std::unique_ptr<Destination>> shelves;
  shelves.push_back(std::make_unique<Shelf>("a", true, log));
  shelves.push_back(std::make_unique<Shelf>("b", false, log));
  shelves.push_back(std::make_unique<Shelf>("c", true, log));
  SeveralDestinations all(std::move(shelves));
  const auto sent = all.send(Batch::of({}, 7));
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().message, "a: full (b has it)");
  all.give_up();
  EXPECT_THAT(log, testing::ElementsAre("a 7", "b 7", "c 7", "a given up", "b given up", "c given up"));
  EXPECT_EQ(all.describe(), "a, b, c");
}

TEST(SeveralDestinations, HaveWhatTheLastOfThemHas) {
  for (const bool is_slow : {false, true}) {
    std::vector<std::string> log;
    std::vector<std::unique_ptr<Destination>> shelves;
    shelves.push_back(std::make_unique<Shelf>("a", false, log, is_slow));
    shelves.push_back(std::make_unique<Shelf>("b", false, log));
    SeveralDestinations all(std::move(shelves));
    EXPECT_EQ(all.send(Batch::of({}, 7)).value(), is_slow ? Delivery::waits : Delivery::arrived);
    const DeliveryCounters sum = all.counters();
    EXPECT_EQ(sum.arrived, 2U);
    EXPECT_EQ(sum.bytes, 4U);
    EXPECT_EQ(sum.retries, 6U);
    EXPECT_EQ(sum.waiting, 8U);
    EXPECT_EQ(sum.waiting_bytes, 10U);
    EXPECT_EQ(sum.dropped, 12U);
  }
}

TEST(Batch, IsOneProfileOfAllItsKinds) {
  Profile space;
  const Batch one = Batch::of({}, 7);
  EXPECT_EQ(&one.whole(space), &one.parts.front().profile);
  EXPECT_TRUE(Batch().whole(space).samples.empty());
}

}  // namespace
}  // namespace ddprof
