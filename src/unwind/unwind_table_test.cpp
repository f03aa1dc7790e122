#include "unwind/unwind_table.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <utility>

namespace ddprof {

namespace {

ddprof_unwind_rule numbered(int number) { return {DDPROF_CFA_SP, 0, 0, number}; }

TEST(RuleDictionary, KnowsTheTwoFixedRules) {
  RuleDictionary dictionary;
  EXPECT_EQ(dictionary[RuleIndex::gap].cfa, DDPROF_CFA_GAP);
  EXPECT_EQ(dictionary[RuleIndex::unsupported].cfa, DDPROF_CFA_UNSUPPORTED);
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_GAP, 0, 0, 0}), RuleIndex::gap);
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_UNSUPPORTED, 0, 0, 0}), RuleIndex::unsupported);
}

TEST(RuleDictionary, GivesEqualRulesOneIndex) {
  RuleDictionary dictionary;
  std::vector<RuleIndex> first;
  for (int i = 0; i < 5000; ++i) first.push_back(dictionary.intern(numbered(i)));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(dictionary.intern(numbered(i)), first[static_cast<std::size_t>(i)]);
    EXPECT_EQ(dictionary[first[static_cast<std::size_t>(i)]].cfa_offset, i);
  }
  EXPECT_EQ(dictionary.size(), 5002U);
}

TEST(RuleDictionary, RefusesAndCountsWhenFull) {
  RuleDictionary dictionary;
  const ddprof_unwind_rule* before = dictionary.rules().data();
  for (int i = 0; i < DDPROF_MAX_UNWIND_RULES - 2; ++i)
    ASSERT_NE(dictionary.intern(numbered(i)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.refusals(), 0U);
  EXPECT_EQ(dictionary.intern(numbered(-1)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.intern(numbered(-1)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.refusals(), 2U);
  EXPECT_EQ(dictionary[dictionary.intern(numbered(77))].cfa_offset, 77);
  EXPECT_EQ(dictionary.size(), std::size_t{DDPROF_MAX_UNWIND_RULES});
  EXPECT_EQ(dictionary.rules().data(), before) << "rules never move";
}

TEST(RuleDictionary, NoFileCanFillIt) {
  RuleDictionary dictionary;
  int offset = 0;
  for (int file = 0; file < 8; ++file) {
    dictionary.start_file();
    for (int i = 0; i < DDPROF_MAX_UNWIND_RULES; ++i) dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset});
  }
  dictionary.start_generated_code();
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset}), RuleIndex::unsupported);
  dictionary.start_file();
  for (int i = 0; i < 100; ++i)
    EXPECT_NE(dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset}), RuleIndex::unsupported);
}

// The obvious twin: an ordered map from row start to rule.
class Twin {
 public:
  void add(std::uint64_t address, RuleIndex rule) { rows_[address] = rule; }
  [[nodiscard]] RuleIndex find(std::uint64_t address) const {
    const auto after = rows_.upper_bound(address);
    return after == rows_.begin() ? RuleIndex::gap : std::prev(after)->second;
  }

 private:
  std::map<std::uint64_t, RuleIndex> rows_;
};

void expect_layout(const UnwindTable& table) {
  const auto pages = table.pages();
  const std::uint64_t page_bytes = std::uint64_t{1} << table.page_shift();
  ASSERT_EQ(pages.size(), (table.end() - table.base() + page_bytes - 1) / page_bytes + 1);
  EXPECT_EQ(pages.front(), 0U);
  EXPECT_EQ(pages.back(), table.rows().size());
  for (std::size_t page = 0; page + 1 < pages.size(); ++page) {
    ASSERT_LT(pages[page], pages[page + 1]) << "every page has a row";
    EXPECT_EQ(table.rows()[pages[page]].pc_low, 0) << "that begins it";
    for (std::size_t row = pages[page] + 1; row < pages[page + 1]; ++row) {
      EXPECT_LT(table.rows()[row - 1].pc_low, table.rows()[row].pc_low);
      EXPECT_NE(table.rows()[row - 1].rule, table.rows()[row].rule);
      EXPECT_LT(table.rows()[row].pc_low, page_bytes);
    }
  }
}

struct Built {
  UnwindTable table;
  Twin twin;
  std::vector<std::uint64_t> starts;
};

// `count` rows, `mean_step` bytes apart on average; the builder is told to expect `expected` of them.
Built build(std::size_t count, std::uint64_t mean_step, std::size_t expected, unsigned seed) {
  std::mt19937_64 random(seed);
  Built built;
  const std::uint64_t base = 0x1234;
  UnwindTableBuilder builder(base, count * mean_step * 2 + 1, expected);
  std::uint64_t address = base;
  for (std::size_t i = 0; i < count; ++i) {
    const auto rule = static_cast<RuleIndex>(random() % 5);
    builder.add(address, rule);
    built.twin.add(address, rule);
    built.starts.push_back(address);
    address += 1 + random() % (2 * mean_step - 1);
  }
  built.twin.add(address, RuleIndex::gap);
  built.starts.push_back(address);
  built.table = std::move(builder).finish(address, {});
  return built;
}

TEST(UnwindTable, FindsWhatAnOrderedMapFinds) {
  for (const std::uint64_t mean_step : {1U, 3U, 40U, 700U, 9000U, 100000U}) {
    for (const std::size_t expected : {std::size_t{1}, std::size_t{3000}, std::size_t{1000000}}) {
      const Built built = build(3000, mean_step, expected, static_cast<unsigned>(mean_step));
      expect_layout(built.table);
      for (const std::uint64_t start : built.starts) {
        for (const std::uint64_t address : {start - 1, start, start + 1}) {
          ASSERT_EQ(built.table.find(address), built.twin.find(address)) << mean_step << " " << address;
        }
      }
    }
  }
}

TEST(UnwindTable, GrowsItsPagesUntilTheIndexIsCheap) {
  for (const std::uint64_t mean_step : {20U, 100U, 500U, 4000U}) {
    const Built built = build(20000, mean_step, 20000, 1);
    EXPECT_LE(built.table.bytes(), built.table.row_count() * 5) << mean_step;
    EXPECT_GE(built.table.page_shift(), UnwindTableBuilder::kMinPageShift);
    EXPECT_LE(built.table.page_shift(), UnwindTableBuilder::kMaxPageShift);
  }
}

TEST(UnwindTable, IsTheSameHoweverManyRowsTooManyWereExpected) {
  const Built exact = build(5000, 300, 5000, 7);
  const Built large = build(5000, 300, 1000000, 7);
  EXPECT_EQ(exact.table.page_shift(), large.table.page_shift());
  EXPECT_EQ(exact.table.bytes(), large.table.bytes());
  EXPECT_EQ(exact.table.row_count(), large.table.row_count());
}

TEST(UnwindTable, KnowsWhereFunctionsBegin) {
  UnwindTableBuilder builder(0x1000, 0x10000, 4);
  const auto add = [&](std::uint64_t begin, std::initializer_list<int> rules) {
    builder.begin_function(begin);
    for (std::uint64_t address = begin; const int rule : rules)
      builder.add(std::exchange(address, address + 8), static_cast<RuleIndex>(rule));
  };
  add(0x1000, {2, 3, 2});
  add(0x1020, {2, 3});  // right behind, with the rule before it
  builder.add(0x1038, RuleIndex::gap);
  add(0x1040, {2, 3, 2});
  builder.add(0x9000, RuleIndex::gap);
  const UnwindTable table = std::move(builder).finish(0x9000, {});
  for (const auto& [begin, end] : {std::pair(0x1000U, 0x1020U), {0x1020U, 0x1038U}, {0x1040U, 0x9000U}}) {
    EXPECT_TRUE(table.is_function_with(begin, begin));
    EXPECT_TRUE(table.is_function_with(begin, end - 1));
    EXPECT_FALSE(table.is_function_with(begin, end));
    EXPECT_FALSE(table.is_function_with(begin, begin - 1));
    EXPECT_FALSE(table.is_function_with(begin + 8, begin + 9)) << "not its first address";
  }
  EXPECT_FALSE(table.is_function_with(0x1000, 0x1041));
  EXPECT_FALSE(table.is_function_with(0x1038, 0x1039));
  EXPECT_FALSE(table.is_function_with(0xfff, 0x1000));
  EXPECT_FALSE(UnwindTable().is_function_with(0, 0));
}

TEST(UnwindTable, IgnoresRowsOutOfOrderOrOutOfItsSpan) {
  UnwindTableBuilder builder(0x1000, 0x100, 4);
  builder.add(0x1010, RuleIndex{2});
  builder.add(0x1008, RuleIndex{3});
  builder.add(0x1010, RuleIndex{3});
  builder.add(0x1100, RuleIndex{3});
  builder.add(0xfff, RuleIndex{3});
  const UnwindTable table = std::move(builder).finish(0x2000, {});
  EXPECT_EQ(table.row_count(), 1U);
  EXPECT_EQ(table.find(0x100f), RuleIndex::gap);
  EXPECT_EQ(table.find(0x1010), RuleIndex{2});
  EXPECT_EQ(table.find(0x10ff), RuleIndex{2});
  EXPECT_EQ(table.find(0x1100), RuleIndex::gap);
}

TEST(UnwindTable, CoversNothingWhenEmpty) {
  const UnwindTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.find(0), RuleIndex::gap);
  EXPECT_EQ(table.find(~std::uint64_t{0}), RuleIndex::gap);
}

}  // namespace

}  // namespace ddprof
