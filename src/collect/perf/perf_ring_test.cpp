#include "collect/perf/perf_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "collect/perf/record_builder.hpp"

namespace ddprof {

namespace {

// Plays the kernel: memory laid out like a ring that records are appended to.
class FakeRing {
 public:
  static constexpr std::size_t kBytes = 256;

  explicit FakeRing(std::uint64_t start = 0) { control_.data_head = control_.data_tail = start; }

  void write(std::span<const std::uint64_t> record) {
    auto bytes = std::as_bytes(record);
    for (std::byte byte : bytes) data()[control_.data_head++ % kBytes] = byte;
  }
  void write_header(std::uint16_t size, std::uint64_t advance) {
    perf_event_header header{.type = 1, .misc = 0, .size = size};
    std::memcpy(data() + control_.data_head % kBytes, &header, sizeof header);
    control_.data_head += advance;
  }
  PerfRing ring() { return PerfRing::over(control_, std::as_bytes(std::span(words_))); }
  [[nodiscard]] std::uint64_t tail() const { return control_.data_tail; }

 private:
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }

  perf_event_mmap_page control_{};
  std::array<std::uint64_t, kBytes / 8> words_{};
};

std::vector<std::uint64_t> record_of(std::uint64_t payload, std::size_t words) {
  RecordBuilder builder(PERF_RECORD_SAMPLE);
  for (std::size_t i = 0; i < words; ++i) builder.u64(payload + i);
  return builder.build();
}

std::uint64_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + index * 8, sizeof value);
  return value;
}

TEST(PerfRing, HasNothingBeforeItIsRefreshed) {
  FakeRing fake;
  PerfRing ring = fake.ring();
  fake.write(record_of(1, 1));
  EXPECT_TRUE(ring.peek().empty());
  ring.refresh();
  EXPECT_EQ(ring.peek().size(), 16U);
}

TEST(PerfRing, YieldsRecordsInOrderAndInPlace) {
  FakeRing fake;
  PerfRing ring = fake.ring();
  fake.write(record_of(10, 1));
  fake.write(record_of(20, 2));
  ring.refresh();
  EXPECT_EQ(word(ring.peek(), 1), 10U);
  EXPECT_EQ(ring.peek().data(), ring.peek().data());
  ring.pop();
  EXPECT_EQ(word(ring.peek(), 2), 21U);
  ring.pop();
  EXPECT_TRUE(ring.peek().empty());
}

TEST(PerfRing, GivesSpaceBackOnlyWhenPublished) {
  FakeRing fake;
  PerfRing ring = fake.ring();
  fake.write(record_of(1, 3));
  ring.refresh();
  ring.peek();
  ring.pop();
  EXPECT_EQ(fake.tail(), 0U);
  EXPECT_EQ(ring.unpublished_bytes(), 32U);
  ring.publish();
  EXPECT_EQ(fake.tail(), 32U);
}

TEST(PerfRing, ReassemblesARecordThatWraps) {
  for (std::uint64_t before_end : {8U, 16U, 24U}) {
    FakeRing fake(FakeRing::kBytes - before_end);
    PerfRing ring = fake.ring();
    fake.write(record_of(100, 4));
    ring.refresh();
    auto record = ring.peek();
    ASSERT_EQ(record.size(), 40U);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(word(record, 1 + i), 100 + i);
    ring.pop();
    EXPECT_TRUE(ring.peek().empty());
    EXPECT_EQ(ring.malformed(), 0U);
  }
}

TEST(PerfRing, ContinuesWhereTheLastReaderStopped) {
  FakeRing fake(8 * FakeRing::kBytes + 64);
  fake.write(record_of(7, 1));
  PerfRing ring = fake.ring();
  ring.refresh();
  EXPECT_EQ(word(ring.peek(), 1), 7U);
}

TEST(PerfRing, SkipsNonsenseAndGoesOnWithWhatComesNext) {
  struct Case {
    std::uint16_t size;
    std::uint64_t advance;
  };
  for (Case bad : {Case{0, 16}, Case{4, 16}, Case{12, 16}, Case{64, 16}, Case{65528, 16}}) {
    FakeRing fake;
    PerfRing ring = fake.ring();
    fake.write_header(bad.size, bad.advance);
    ring.refresh();
    EXPECT_TRUE(ring.peek().empty()) << bad.size;
    EXPECT_EQ(ring.malformed(), 1U);
    fake.write(record_of(5, 1));
    ring.refresh();
    EXPECT_EQ(word(ring.peek(), 1), 5U);
  }
}

TEST(PerfRing, SkipsAHeadThatIsFurtherThanTheRingIsLong) {
  FakeRing fake;
  PerfRing ring = fake.ring();
  fake.write_header(16, 10 * FakeRing::kBytes);
  ring.refresh();
  EXPECT_TRUE(ring.peek().empty());
  ring.publish();
  EXPECT_EQ(fake.tail(), 10 * FakeRing::kBytes);
  EXPECT_EQ(ring.malformed(), 1U);
}

TEST(PerfRing, RefusesToMapWhatIsNotAPerfEvent) { EXPECT_FALSE(PerfRing::map(-1, 1).ok()); }

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 1024;

struct Memory {
  perf_event_mmap_page control{};
  std::array<std::uint64_t, kBytes / 8> words{};

  void write(std::span<const std::uint64_t> record) {
    for (std::uint64_t word : record) {
      words[control.data_head % kBytes / 8] = word;
      control.data_head += 8;
    }
  }
  void write_lost(std::uint64_t time) {
    write(RecordBuilder(PERF_RECORD_LOST).u64(1).u64(1).trailer(1, 1, time, 0, 1).build());
  }
};

class RingMergeTest : public ::testing::Test {
 protected:
  RingMergeTest() {
    for (Memory& memory : memories_)
      rings_.push_back(PerfRing::over(memory.control, std::as_bytes(std::span(memory.words))));
  }
  std::vector<std::uint64_t> times_until(std::uint64_t until, std::uint64_t now = 1000) {
    std::vector<std::uint64_t> times;
    merge_.run(rings_, until, now,
               [&](std::span<const std::byte> bytes) { times.push_back(*record_time(bytes)); });
    return times;
  }

  std::array<Memory, 3> memories_;
  std::vector<PerfRing> rings_;
  RingMerge merge_;
};

TEST_F(RingMergeTest, OrdersTheRecordsOfAllRings) {
  for (std::uint64_t time : {10U, 40U, 50U}) memories_[0].write_lost(time);
  for (std::uint64_t time : {20U, 30U, 60U}) memories_[1].write_lost(time);
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST_F(RingMergeTest, LeavesWhatIsTooYoungForTheNextRound) {
  memories_[0].write_lost(10);
  memories_[0].write_lost(90);
  memories_[1].write_lost(80);
  EXPECT_THAT(times_until(50), ElementsAre(10));
  // Arrives late, but is older than what waits.
  memories_[2].write_lost(70);
  EXPECT_THAT(times_until(85), ElementsAre(70, 80));
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(90));
}

TEST_F(RingMergeTest, GivesBackTheSpaceOfWhatItHandedOver) {
  memories_[0].write_lost(10);
  std::uint64_t first = memories_[0].control.data_head;
  memories_[0].write_lost(90);
  times_until(50);
  EXPECT_EQ(memories_[0].control.data_tail, first);
  times_until(RingMerge::kNoLimit);
  EXPECT_EQ(memories_[0].control.data_tail, memories_[0].control.data_head);
}

TEST_F(RingMergeTest, GivesSpaceBackDuringALongRound) {
  for (std::uint64_t time = 1; time <= 10; ++time) memories_[0].write_lost(time);
  std::uint64_t tail_at_last = 0;
  merge_.run(rings_, RingMerge::kNoLimit, 1000,
             [&](std::span<const std::byte>) { tail_at_last = memories_[0].control.data_tail; });
  EXPECT_GT(tail_at_last, 0U);
}

TEST_F(RingMergeTest, IsNotDammedUpByATimeFromTheFuture) {
  memories_[0].write_lost(~std::uint64_t{0} - 5);
  memories_[0].write_lost(20);
  memories_[1].write_lost(10);
  EXPECT_EQ(times_until(50).size(), 3U);
  EXPECT_EQ(merge_.malformed(), 1U);
}

TEST_F(RingMergeTest, PassesOverRecordsTooShortForATime) {
  memories_[0].write(RecordBuilder(PERF_RECORD_LOST).build());
  memories_[0].write_lost(20);
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(20));
  EXPECT_EQ(merge_.malformed(), 1U);
}

TEST_F(RingMergeTest, HasNothingToSayAboutEmptyRings) {
  EXPECT_THAT(times_until(RingMerge::kNoLimit), IsEmpty());
}

}  // namespace

}  // namespace ddprof
