#include "collect/perf/perf_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "collect/perf/record_builder.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
constexpr RecordLayout kPlain{.sample_type = kSampleType};

template <typename T>
std::optional<T> parse_as(const std::vector<std::uint64_t>& words, const RecordLayout& layout = kPlain) {
  auto record = parse_record(std::as_bytes(std::span(words)), layout);
  if (!record || !std::holds_alternative<T>(*record)) return std::nullopt;
  return std::get<T>(*record);
}

// Every shorter version of the record, with a size field that fits, must be refused or understood, never
// misread.
void expect_truncations_are_refused(const std::vector<std::uint64_t>& words, const RecordLayout& layout) {
  for (std::size_t size = 1; size < words.size(); ++size) {
    std::vector<std::uint64_t> shorter(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(size));
    perf_event_header header{};
    std::memcpy(&header, shorter.data(), sizeof header);
    header.size = static_cast<std::uint16_t>(size * 8);
    std::memcpy(shorter.data(), &header, sizeof header);
    EXPECT_FALSE(parse_record(std::as_bytes(std::span(shorter)), layout)) << size << " words";
  }
}

RecordBuilder sample_head(std::uint16_t misc = PERF_RECORD_MISC_USER) {
  RecordBuilder builder(PERF_RECORD_SAMPLE, misc);
  builder.u64(77).u64(0x401000).u32(10).u32(11).u64(123456789).u32(3).u32(0).u64(10101010);
  return builder;
}

TEST(PerfRecord, ReadsASampleWithoutExtras) {
  auto sample = parse_as<SampleRecord>(sample_head().build());
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->id.identifier, 77U);
  EXPECT_EQ(sample->ip, 0x401000U);
  EXPECT_EQ(sample->id.pid, 10U);
  EXPECT_EQ(sample->id.tid, 11U);
  EXPECT_EQ(sample->id.time, 123456789U);
  EXPECT_EQ(sample->id.cpu, 3U);
  EXPECT_EQ(sample->period, 10101010U);
  EXPECT_EQ(sample->misc, PERF_RECORD_MISC_USER);
}

TEST(PerfRecord, ReadsCallchainRawDataRegistersAndStack) {
  RecordLayout layout{.sample_type = kSampleType | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                      .user_registers = 0b111};
  RecordBuilder builder = sample_head();
  builder.u64(2).u64(0xAA).u64(0xBB);
  builder.u32(12).u32(1).u64(2);  // raw: 12 bytes
  builder.u64(PERF_SAMPLE_REGS_ABI_64).u64(7).u64(8).u64(9);
  builder.u64(16).u64(0x11).u64(0x22).u64(8);  // 16 reserved, 8 copied
  auto words = builder.build();
  auto sample = parse_as<SampleRecord>(words, layout);
  ASSERT_TRUE(sample);
  EXPECT_THAT(sample->callchain, ElementsAre(0xAA, 0xBB));
  EXPECT_EQ(sample->raw.size(), 12U);
  EXPECT_EQ(sample->registers_abi, 2U);
  EXPECT_THAT(sample->registers, ElementsAre(7, 8, 9));
  ASSERT_EQ(sample->stack.size(), 8U);
  EXPECT_EQ(sample->stack[0], std::byte{0x11});
  EXPECT_EQ(sample->stack_reserved, 16U);
  expect_truncations_are_refused(words, layout);
}

TEST(PerfRecord, ReadsASampleOfATaskWithoutUserRegisters) {
  RecordLayout layout{.sample_type = kSampleType | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                      .user_registers = 0xff0fff};
  auto sample = parse_as<SampleRecord>(sample_head().u64(PERF_SAMPLE_REGS_ABI_NONE).u64(0).build(), layout);
  ASSERT_TRUE(sample);
  EXPECT_TRUE(sample->registers.empty());
  EXPECT_TRUE(sample->stack.empty());
}

TEST(PerfRecord, RefusesASampleThatCopiedMoreThanItReserved) {
  RecordLayout layout{.sample_type = kSampleType | PERF_SAMPLE_STACK_USER};
  EXPECT_FALSE(parse_as<SampleRecord>(sample_head().u64(8).u64(0).u64(9).build(), layout));
}

TEST(PerfRecord, RefusesCountsThatOverflow) {
  RecordLayout layout{.sample_type = kSampleType | PERF_SAMPLE_CALLCHAIN};
  EXPECT_FALSE(parse_as<SampleRecord>(sample_head().u64(~std::uint64_t{0}).u64(0).build(), layout));
  EXPECT_FALSE(parse_as<SampleRecord>(sample_head().u64(std::uint64_t{1} << 61).u64(0).build(), layout));
}

TEST(PerfRecord, RefusesAFieldThatItDoesNotKnow) {
  RecordLayout layout{.sample_type = kSampleType | PERF_SAMPLE_BRANCH_STACK};
  EXPECT_FALSE(parse_as<SampleRecord>(sample_head().u64(0).build(), layout));
}

TEST(PerfRecord, ReadsAMappingWithInode) {
  auto words = RecordBuilder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER)
                   .u32(5)
                   .u32(6)
                   .u64(0x7f0000)
                   .u64(0x2000)
                   .u64(0x1000)
                   .u32(8)
                   .u32(1)
                   .u64(4242)
                   .u64(1)
                   .u32(PROT_READ | PROT_EXEC)
                   .u32(MAP_PRIVATE)
                   .text("/usr/lib/libc.so.6")
                   .trailer(5, 6, 999, 1, 77)
                   .build();
  auto map = parse_as<MmapRecord>(words);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->pid, 5U);
  EXPECT_EQ(map->start, 0x7f0000U);
  EXPECT_EQ(map->length, 0x2000U);
  EXPECT_EQ(map->file_offset, 0x1000U);
  EXPECT_EQ(map->device_major, 8U);
  EXPECT_EQ(map->device_minor, 1U);
  EXPECT_EQ(map->inode, 4242U);
  EXPECT_TRUE(map->build_id.empty());
  EXPECT_TRUE(map->is_executable);
  EXPECT_EQ(map->path, "/usr/lib/libc.so.6");
  EXPECT_EQ(map->id.time, 999U);
}

TEST(PerfRecord, ReadsAMappingWithBuildIdInsteadOfInode) {
  RecordBuilder builder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
  builder.u32(5).u32(6).u64(0x7f0000).u64(0x2000).u64(0);
  builder.put(std::uint8_t{4}).put(std::uint8_t{0}).put(std::uint16_t{0}).fill(4, std::byte{0xAB}).fill(16);
  auto words = builder.u32(PROT_READ).u32(0).text("/bin/x").trailer(5, 6, 1, 0, 77).build();
  auto map = parse_as<MmapRecord>(words);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->build_id.hex(), "abababab");
  EXPECT_EQ(map->inode, 0U);
  EXPECT_FALSE(map->is_executable);
}

TEST(PerfRecord, BoundsABuildIdThatClaimsToBeTooLong) {
  RecordBuilder builder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
  builder.u32(5).u32(6).u64(0).u64(0).u64(0).put(std::uint8_t{255}).fill(23, std::byte{1}).u32(0).u32(0);
  auto map = parse_as<MmapRecord>(builder.text("x").trailer(1, 1, 1, 1, 1).build());
  ASSERT_TRUE(map);
  EXPECT_EQ(map->build_id.bytes().size(), BuildId::kMaxBytes);
}

TEST(PerfRecord, ReadsAMappingOfOldKernels) {
  auto words = RecordBuilder(PERF_RECORD_MMAP)
                   .u32(5)
                   .u32(6)
                   .u64(1)
                   .u64(2)
                   .u64(3)
                   .text("/bin/x")
                   .trailer(5, 6, 9, 0, 7)
                   .build();
  auto map = parse_as<MmapRecord>(words);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->path, "/bin/x");
  EXPECT_TRUE(map->is_executable);
}

TEST(PerfRecord, ReadsCommAndTellsExecFromRenaming) {
  auto exec = RecordBuilder(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
                  .u32(5)
                  .u32(6)
                  .text("sh")
                  .trailer(5, 6, 9, 0, 7);
  auto rename = RecordBuilder(PERF_RECORD_COMM).u32(5).u32(6).text("worker").trailer(5, 6, 9, 0, 7);
  ASSERT_TRUE(parse_as<CommRecord>(exec.build()));
  EXPECT_TRUE(parse_as<CommRecord>(exec.build())->is_exec);
  EXPECT_EQ(parse_as<CommRecord>(exec.build())->comm, "sh");
  EXPECT_FALSE(parse_as<CommRecord>(rename.build())->is_exec);
}

TEST(PerfRecord, ReadsForkAndExit) {
  for (std::uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    auto words =
        RecordBuilder(type).u32(20).u32(10).u32(21).u32(11).u64(555).trailer(10, 11, 556, 2, 7).build();
    auto task = parse_as<TaskRecord>(words);
    ASSERT_TRUE(task);
    EXPECT_EQ(task->is_fork, type == PERF_RECORD_FORK);
    EXPECT_EQ(task->pid, 20U);
    EXPECT_EQ(task->parent_pid, 10U);
    EXPECT_EQ(task->tid, 21U);
    EXPECT_EQ(task->parent_tid, 11U);
    EXPECT_EQ(task->time, 555U);
    EXPECT_EQ(task->id.tid, 11U);
    expect_truncations_are_refused(words, kPlain);
  }
}

TEST(PerfRecord, ReadsATotalWithAndWithoutTimes) {
  auto plain = RecordBuilder(PERF_RECORD_READ).u32(5).u32(6).u64(1000).trailer(5, 6, 9, 0, 7).build();
  ASSERT_TRUE(parse_as<ReadRecord>(plain));
  EXPECT_EQ(parse_as<ReadRecord>(plain)->value, 1000U);
  RecordLayout timed = kPlain;
  timed.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  auto with_times =
      RecordBuilder(PERF_RECORD_READ).u32(5).u32(6).u64(1000).u64(40).u64(20).trailer(5, 6, 9, 0, 7);
  ASSERT_TRUE(parse_as<ReadRecord>(with_times.build(), timed));
  EXPECT_EQ(parse_as<ReadRecord>(with_times.build(), timed)->time_enabled, 40U);
  EXPECT_EQ(parse_as<ReadRecord>(with_times.build(), timed)->time_running, 20U);
}

TEST(PerfRecord, ReadsLosses) {
  auto lost = RecordBuilder(PERF_RECORD_LOST).u64(7).u64(33).trailer(5, 6, 9, 0, 7).build();
  ASSERT_TRUE(parse_as<LostRecord>(lost));
  EXPECT_EQ(parse_as<LostRecord>(lost)->count, 33U);
  EXPECT_EQ(parse_as<LostRecord>(lost)->id.tid, 6U);
  auto samples = RecordBuilder(PERF_RECORD_LOST_SAMPLES).u64(44).trailer(5, 6, 9, 0, 7).build();
  EXPECT_EQ(parse_as<LostRecord>(samples)->count, 44U);
}

TEST(PerfRecord, ReadsThrottling) {
  auto start = RecordBuilder(PERF_RECORD_THROTTLE).u64(1).u64(2).u64(3).trailer(5, 6, 9, 0, 7).build();
  auto stop = RecordBuilder(PERF_RECORD_UNTHROTTLE).u64(1).u64(2).u64(3).trailer(5, 6, 9, 0, 7).build();
  EXPECT_TRUE(parse_as<ThrottleRecord>(start)->is_start);
  EXPECT_FALSE(parse_as<ThrottleRecord>(stop)->is_start);
}

TEST(PerfRecord, PassesOverTypesThatItDoesNotKnow) {
  auto words = RecordBuilder(9999).u64(1).trailer(5, 6, 9, 0, 7).build();
  ASSERT_TRUE(parse_as<OtherRecord>(words));
  EXPECT_EQ(parse_as<OtherRecord>(words)->type, 9999U);
}

TEST(PerfRecord, RefusesASizeThatIsNotTheSizeOfTheBytes) {
  auto words = sample_head().build();
  EXPECT_FALSE(parse_record(std::as_bytes(std::span(words)).first(16), kPlain));
  EXPECT_FALSE(parse_record({}, kPlain));
}

TEST(PerfRecord, FindsTimeAndIdentifierBeforeTheLayoutIsKnown) {
  auto sample = sample_head().build();
  EXPECT_EQ(record_time(std::as_bytes(std::span(sample))), 123456789U);
  EXPECT_EQ(record_identifier(std::as_bytes(std::span(sample))), 77U);
  auto lost = RecordBuilder(PERF_RECORD_LOST).u64(7).u64(33).trailer(5, 6, 9, 0, 78).build();
  EXPECT_EQ(record_time(std::as_bytes(std::span(lost))), 9U);
  EXPECT_EQ(record_identifier(std::as_bytes(std::span(lost))), 78U);
  EXPECT_FALSE(record_time({}));
  EXPECT_FALSE(record_time(std::as_bytes(std::span(lost)).first(8)));
  EXPECT_FALSE(record_identifier(std::as_bytes(std::span(lost)).first(8)));
  EXPECT_EQ(record_identifier(std::as_bytes(std::span(sample)).first(16)), 77U) << "nothing else is needed";
}

TEST(PerfRecord, KeepsOnlyTheKernelsPartOfACallchain) {
  constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
  constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  std::array<std::uint64_t, 5> both = {kKernel, 1, 2, kUser, 3};
  EXPECT_THAT(kernel_part(both), ElementsAre(1, 2));
  std::array<std::uint64_t, 2> user = {kUser, 3};
  EXPECT_TRUE(kernel_part(user).empty());
  EXPECT_TRUE(kernel_part({}).empty());
}

}  // namespace
}  // namespace ddprof
