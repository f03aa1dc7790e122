#include "collect/heap/table_publisher.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace ddprof {
namespace {

class TablePublisherTest : public testing::Test {
 protected:
  UnwindTable table(std::uint64_t base, std::int32_t offset) {
    UnwindTableBuilder builder(base, 0x10000, 4);
    builder.add(base,
                rules_.intern({.cfa = DDPROF_CFA_SP, .fp_ra = 0, .fp_offset = 0, .cfa_offset = offset}));
    builder.add(base + 0x800,
                rules_.intern({.cfa = DDPROF_CFA_FP, .fp_ra = 0, .fp_offset = 0, .cfa_offset = 16}));
    return std::move(builder).finish(base + 0x1000, {});
  }
  static ModuleMap map_of(const UnwindTable& table, bool is_generated = false) {
    ModuleMap map;
    map.add(
        {.start = {0x7000}, .end = {0x9000}, .bias = 0x7000, .table = &table, .is_generated = is_generated});
    return map;
  }
  template <typename Part>
  const Part* at(std::uint64_t offset) {
    return reinterpret_cast<const Part*>(memory_.data() + offset);
  }

  MappedRegion memory_ = MappedRegion::map_anonymous_shared(1 << 20).value();
  RuleDictionary rules_;
};

TEST_F(TablePublisherTest, ATableIsThereAsItIsWithItsRules) {
  TablePublisher publisher(memory_);
  const UnwindTable one = table(0x1000, 24);
  const auto modules = publisher.describe(map_of(one), rules_);
  ASSERT_EQ(modules.size(), 1U);
  EXPECT_EQ(modules[0].bias, 0x7000U);
  const auto* published = at<ddprof_heap_table>(modules[0].table);
  EXPECT_EQ(published->base, one.base());
  EXPECT_EQ(published->size, one.end() - one.base());
  EXPECT_EQ(published->row_count, one.rows().size());
  EXPECT_EQ(at<ddprof_unwind_row>(published->rows)[0].rule, one.rows()[0].rule);
  const auto* all = at<ddprof_heap_tables>(0);
  EXPECT_EQ(all->rule_count, rules_.size());
  EXPECT_EQ(all->rules[one.rows()[0].rule].cfa_offset, 24);
}

TEST_F(TablePublisherTest, TheSameTableIsPublishedOnceAlsoByTheNextWorker) {
  const UnwindTable one = table(0x1000, 24);
  const UnwindTable other = table(0x1000, 32);
  std::uint64_t first = 0;
  {
    TablePublisher publisher(memory_);
    first = publisher.describe(map_of(one), rules_)[0].table;
    EXPECT_EQ(publisher.describe(map_of(one), rules_)[0].table, first);
    EXPECT_NE(publisher.describe(map_of(other), rules_)[0].table, first);
  }
  TablePublisher next(memory_);
  EXPECT_EQ(next.rules().size(), rules_.size());
  const UnwindTable again = table(0x1000, 24);
  EXPECT_EQ(next.describe(map_of(again), rules_)[0].table, first);
}

TEST_F(TablePublisherTest, GeneratedCodeAndCodeWithoutATableHaveNone) {
  TablePublisher publisher(memory_);
  const UnwindTable one = table(0x1000, 24);
  EXPECT_EQ(publisher.describe(map_of(one, true), rules_)[0].table, 0U);
  ModuleMap without;
  without.add({.start = {0x7000}, .end = {0x9000}});
  EXPECT_EQ(publisher.describe(without, rules_)[0].table, 0U);
}

TEST_F(TablePublisherTest, WithoutRoomATableIsNotPublished) {
  MappedRegion small = MappedRegion::map_anonymous_shared(sizeof(ddprof_heap_tables) + 128).value();
  TablePublisher publisher(small);
  const UnwindTable one = table(0x1000, 24);
  EXPECT_EQ(publisher.describe(map_of(one), rules_)[0].table, 0U);
}

TEST_F(TablePublisherTest, WhatAWorkerWroteIsNotBelieved) {
  auto& all = *reinterpret_cast<ddprof_heap_tables*>(memory_.data());
  all.used = ~std::uint64_t{0};
  all.first = 1 << 19;
  reinterpret_cast<ddprof_heap_table*>(memory_.data() + (1 << 19))->next = 1 << 19;  // a circle
  all.rule_count = 1'000'000;
  TablePublisher publisher(memory_);
  EXPECT_LE(publisher.rules().size(), std::size_t{DDPROF_MAX_UNWIND_RULES});
  const UnwindTable one = table(0x1000, 24);
  EXPECT_NE(publisher.describe(map_of(one), rules_)[0].table, 0U);
}

}  // namespace
}  // namespace ddprof
