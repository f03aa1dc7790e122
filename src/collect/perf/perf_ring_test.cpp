#include "collect/perf/perf_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

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

}  // namespace
}  // namespace ddprof
