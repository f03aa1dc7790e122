#include "symbol/dwarf/split_units.hpp"

#include <gtest/gtest.h>

#include "symbol/dwarf/dwarf_test_bytes.hpp"

namespace ddprof {

namespace {

// Two units whose ids want the same of four slots; columns info, abbrev, str_offsets and 8.
DwarfBytes index_of_version(std::uint32_t version) {
  return DwarfBytes()
      .u32(version)
      .u32(4)
      .u32(2)
      .u32(4)
      .u64(0)
      .u64(0x1)
      .u64(0x5)
      .u64(0)
      .u32(0)
      .u32(1)
      .u32(2)
      .u32(0)
      .u32(1)
      .u32(3)
      .u32(6)
      .u32(8)
      .u32(10)
      .u32(11)
      .u32(12)
      .u32(13)
      .u32(20)
      .u32(21)
      .u32(22)
      .u32(23);
}

TEST(PackageIndex, FindsAUnitThatIsNotInItsFirstSlot) {
  WorkBudget budget;
  const auto entry = find_in_package_index(index_of_version(5).get(), 0x5, budget);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->info, 20U);
  EXPECT_EQ(entry->abbreviations, 21U);
  EXPECT_EQ(entry->str_offsets, 22U);
  EXPECT_EQ(entry->rnglists, 23U);
}

TEST(PackageIndex, KnowsThatVersion2HasMacrosWhereVersion5HasRanges) {
  WorkBudget budget;
  const auto entry = find_in_package_index(index_of_version(2).get(), 0x1, budget);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->info, 10U);
  EXPECT_EQ(entry->rnglists, 0U);
}

TEST(PackageIndex, FindsNothingThatIsNotThere) {
  WorkBudget budget;
  EXPECT_FALSE(find_in_package_index(index_of_version(5).get(), 0x9, budget).has_value());
  EXPECT_FALSE(find_in_package_index(index_of_version(3).get(), 0x1, budget).has_value());
  EXPECT_FALSE(find_in_package_index({}, 0x1, budget).has_value());
  const auto whole = index_of_version(5);
  EXPECT_FALSE(find_in_package_index(std::span(whole.get()).first(80), 0x5, budget).has_value());
}

// Both slots are taken: the search ends after all of them.
TEST(PackageIndex, SearchesEachSlotOnce) {
  const auto full =
      DwarfBytes().u32(5).u32(1).u32(2).u32(2).u64(0x2).u64(0x3).u32(1).u32(2).u32(1).u32(0).u32(0);
  WorkBudget budget;
  EXPECT_FALSE(find_in_package_index(full.get(), 0x8, budget).has_value());
  EXPECT_FALSE(budget.is_spent());
}

}  // namespace

}  // namespace ddprof
