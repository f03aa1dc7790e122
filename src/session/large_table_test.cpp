#include "session/large_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

std::shared_ptr<const CodeFile> own_program() {
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CodeFile file{.kind = CodeFile::Kind::elf, .path = "/proc/self/exe"};
  file.image = MappedRegion::map_file(fd.get()).value_or({});
  file.elf = ElfFile::parse(file.image.bytes()).value();
  return std::make_shared<const CodeFile>(std::move(file));
}

class LargeTableTest : public testing::Test {
 protected:
  LargeTable make(FileThreads& threads) {
    return {file_, WindowCompiler::of(*file_->elf, 0).value(), threads, {}, rules_, user_};
  }
  [[nodiscard]] std::uint64_t address() const { return file_->elf->entry(); }
  [[nodiscard]] bool is_as_in_whole(const LargeTable& large, std::uint64_t elf_address) {
    const ddprof_unwind_rule& expected = whole_rules_[whole_.find(elf_address)];
    return std::memcmp(&rules_[large.table().find(elf_address)], &expected, sizeof expected) == 0;
  }

  std::shared_ptr<const CodeFile> file_ = own_program();
  FileThreads::User user_ = 1;
  RuleDictionary rules_;
  RuleDictionary whole_rules_;
  UnwindTable whole_ = compile_unwind_table(*file_->elf, whole_rules_);
};

TEST_F(LargeTableTest, HasTheRulesOfTheWholeTableAndOnlyWhatWasAskedFor) {
  rules_.intern({4, 3, 2, 1});  // other numbers than those of the threads
  FileThreads threads({.most_waiting = std::chrono::minutes(1)});
  const LargeTable large = make(threads);
  EXPECT_TRUE(large.table().empty());
  EXPECT_TRUE(is_as_in_whole(large, address()));
  const std::size_t one_window = large.bytes();
  EXPECT_GT(one_window, 0U);
  EXPECT_LT(one_window, whole_.bytes() / 2);
  for (std::uint64_t at = whole_.base(); at < whole_.end(); at += 37)
    ASSERT_TRUE(is_as_in_whole(large, at)) << at;
  EXPECT_EQ(large.problem(), "");
  EXPECT_GT(large.bytes(), one_window);
}

TEST_F(LargeTableTest, AWindowThatIsNotThereYetIsAGapUntilItIs) {
  FileThreads threads({.most_waiting = Nanoseconds(0)});
  LargeTable large = make(threads);
  if (large.table().find(address()) == RuleIndex::gap) {
    EXPECT_TRUE(large.late_since());
    EXPECT_NE(large.problem(), "");
  }
  threads.wait_for(std::chrono::minutes(1), [&] { return threads.finished() > 0; });
  EXPECT_TRUE(is_as_in_whole(large, address()));
  large.forget_late();
  EXPECT_FALSE(large.late_since());
}

// Where nothing has rows, instructions are followed, and what does not return has to be known.
TEST_F(LargeTableTest, FunctionsThatDoNotReturnAreReadForAGap) {
  FileThreads threads({.most_waiting = std::chrono::minutes(1)});
  const LargeTable large = make(threads);
  std::uint64_t gap = whole_.base();
  while (gap < whole_.end() && whole_.find(gap) != RuleIndex::gap) ++gap;
  if (gap == whole_.end()) GTEST_SKIP() << "all code has rows";
  EXPECT_TRUE(large.table().no_return().addresses.empty());
  EXPECT_EQ(large.table().find(gap), RuleIndex::gap);
  EXPECT_FALSE(large.table().no_return().addresses.empty());
}

}  // namespace
}  // namespace ddprof
