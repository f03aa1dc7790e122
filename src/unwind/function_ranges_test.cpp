#include "unwind/function_ranges.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

std::uint32_t from_header(std::uint64_t address) {
  return static_cast<std::uint32_t>(address - TestElf::kHeaderAddress);
}

// Functions at 0x1000 to 0x1040, 0x1040 to 0x1050 and 0x2000 to 0x2100, and a table that leads to them.
class FunctionRangesTest : public testing::Test {
 protected:
  FunctionRangesTest() {
    cie_ = frames_.add_cie({});
    add_function(0x1000, 0x40);
    add_function(0x1040, 0x10);
    add_function(0x2000, 0x100);
  }

  void add_function(std::uint64_t begin, std::uint64_t size) {
    add_to_table(begin, frames_.data().size());
    frames_.add_fde(cie_, begin, size, {});
  }
  void add_to_table(std::uint64_t begin, std::uint64_t record) {
    table_.u32(from_header(begin)).u32(from_header(TestElf::kEhFrameAddress + record));
    ++count_;
  }
  // "1000..1040"; empty: none.
  std::string range(std::uint64_t address, bool has_table = true) {
    CfiBytes header{1, 0x1b, count_encoding_, table_encoding_};
    header.u32(0).u32(count_).append(table_);
    const TestElf elf(frames_.data(), {}, EM_X86_64, 0x1000, 0x10000, {}, has_table ? header : CfiBytes());
    const ElfFile file = ElfFile::parse(elf.bytes()).value();
    const auto found = FunctionRanges(file, limits_).find(address);
    return found ? fmt::format("{:x}..{:x}", found->begin, found->end) : "";
  }

  EhFrame frames_;
  std::size_t cie_ = 0;
  CfiBytes table_;
  std::uint32_t count_ = 0;
  unsigned count_encoding_ = 0x03, table_encoding_ = 0x3b;
  ReadLimits limits_;
};

TEST_F(FunctionRangesTest, ATableLeadsToTheFunctionThatCoversAnAddress) {
  for (const bool has_table : {true, false}) {
    EXPECT_EQ(range(0xfff, has_table), "");
    EXPECT_EQ(range(0x1000, has_table), "1000..1040");
    EXPECT_EQ(range(0x103f, has_table), "1000..1040");
    EXPECT_EQ(range(0x1040, has_table), "1040..1050");
    EXPECT_EQ(range(0x1050, has_table), "") << "padding is of no function";
    EXPECT_EQ(range(0x1fff, has_table), "");
    EXPECT_EQ(range(0x20ff, has_table), "2000..2100");
    EXPECT_EQ(range(0x2100, has_table), "");
  }
}

// A table with more entries for half a MiB of code than any compiler makes.
TEST_F(FunctionRangesTest, AWindowOfManyEntriesIsNotReadToTheEnd) {
  for (unsigned i = 0; i < 600'000; ++i) add_to_table(0x2000, 0x40);
  CfiBytes header{1, 0x1b, count_encoding_, table_encoding_};
  header.u32(0).u32(count_).append(table_);
  const TestElf elf(frames_.data(), {}, EM_X86_64, 0x1000, 0x10000, {}, header);
  const ElfFile file = ElfFile::parse(elf.bytes()).value();
  RuleDictionary rules;
  const auto windows = WindowCompiler::of(file, 0);
  ASSERT_TRUE(windows);
  const UnwindTable table = windows->compile(0, rules);
  EXPECT_EQ(table.counters().unread, 1U);
  EXPECT_NE(table.find(0x1000), RuleIndex::gap) << "what was read is right";
}

TEST_F(FunctionRangesTest, AnotherKindOfTableIsNotNeeded) {
  table_encoding_ = 0x1b;
  EXPECT_EQ(range(0x1010), "1000..1040");
  table_encoding_ = 0x3b;
  count_encoding_ = 0xff;
  EXPECT_EQ(range(0x1010), "1000..1040");
}

TEST_F(FunctionRangesTest, ASectionLargerThanTheLimitIsNotIndexed) {
  limits_.max_memory = 64;
  EXPECT_EQ(range(0x1010, false), "");
  EXPECT_EQ(range(0x1010, true), "1000..1040") << "a table needs no memory";
}

TEST_F(FunctionRangesTest, ATableThatLiesLeadsNowhere) {
  add_to_table(0x3000, 0);  // a CIE
  EXPECT_EQ(range(0x3000), "");
  add_to_table(0x4000, cie_ + 4);  // the middle of a record
  EXPECT_EQ(range(0x4000), "");
  add_to_table(0x5000, 0x7fff0000);  // outside
  EXPECT_EQ(range(0x5000), "");
  count_ = 0xffffffff;
  EXPECT_EQ(range(0x1010), "1000..1040") << "the table ends with its section";
}

TEST_F(FunctionRangesTest, AnEntryThatIsTooLongIsNotSearched) {
  const std::string letters = "z" + std::string(2000, 'B');
  cie_ = frames_.add_cie({.augmentation = letters});
  add_function(0x6000, 0x10);
  EXPECT_EQ(range(0x6000), "");
}

// By the index of the compiler of unwind tables.
TEST(FunctionRanges, EveryEntryOfThisProgramIsFound) {
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const MappedRegion image = MappedRegion::map_file(fd.get()).value();
  const ElfFile file = ElfFile::parse(image.bytes()).value();
  const FunctionRanges ranges(file);
  EXPECT_EQ(ranges.memory_bytes(), 0U) << "linkers write a table";
  UnwindTableCounters counters;
  const CfiIndex index(eh_frame_section(file), CodeRanges(file.segments()), counters);
  ASSERT_GT(index.size(), 100U);
  for (std::size_t at = 0; at < index.size(); ++at) {
    const auto fde = index.fde(at);
    ASSERT_TRUE(fde);
    for (const std::uint64_t address : {fde->begin, fde->end - 1}) {
      const auto found = ranges.find(address);
      ASSERT_TRUE(found) << address;
      EXPECT_EQ(found->begin, fde->begin);
      EXPECT_EQ(found->end, fde->end);
    }
  }
}

TEST(FunctionRanges, TheUnwindTableOfThisProgramHasTheSame) {
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const MappedRegion image = MappedRegion::map_file(fd.get()).value();
  const ElfFile file = ElfFile::parse(image.bytes()).value();
  RuleDictionary rules;
  const UnwindTable table = compile_unwind_table(file, rules);
  UnwindTableCounters counters;
  const CfiIndex index(eh_frame_section(file), CodeRanges(file.segments()), counters);
  std::size_t compared = 0;
  for (std::size_t at = 0; at + 1 < index.size(); ++at) {
    const auto fde = index.fde(at);
    ASSERT_TRUE(fde);
    if (fde->end - fde->begin < 2 || rules[table.find(fde->begin)].cfa == DDPROF_CFA_UNSUPPORTED) continue;
    ++compared;
    EXPECT_TRUE(table.is_function_with(fde->begin, fde->end - 1)) << std::hex << fde->begin;
    EXPECT_FALSE(table.is_function_with(fde->begin, fde->end)) << std::hex << fde->begin;
    EXPECT_FALSE(table.is_function_with(fde->begin + 1, fde->end - 1)) << std::hex << fde->begin;
    EXPECT_FALSE(table.is_function_with(fde->begin, index.begin_of(at + 1))) << std::hex << fde->begin;
  }
  EXPECT_GT(compared, 100U);
}

}  // namespace
}  // namespace ddprof
