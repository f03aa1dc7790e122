#include "export/destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

class Shelf final : public Destination {
 public:
  Shelf(std::string name, bool is_full, std::vector<std::string>& log)
      : name_(std::move(name)), is_full_(is_full), log_(log) {}
  Result<Delivery> send(const Batch& batch) override {
    log_.push_back(fmt::format("{} {}", name_, batch.sequence));
    if (is_full_) return make_error(ErrorCode::exhausted, "{}: full", name_);
    return Delivery::arrived;
  }
  [[nodiscard]] std::string describe() const override { return name_; }
  void give_up() override { log_.push_back(name_ + " given up"); }

 private:
  std::string name_;
  bool is_full_;
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

}  // namespace
}  // namespace ddprof
