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

// Columns that are not used, as many as there may be.
TEST(PackageIndex, HasSixteenColumnsAtMostAndNoMoreUnitsThanSlots) {
  const auto found_with = [](std::uint32_t columns, std::uint32_t units, std::uint32_t slots) {
    DwarfBytes index = DwarfBytes().u32(5).u32(columns).u32(units).u32(slots);
    for (std::uint32_t slot = 0; slot < slots; ++slot) index.u64(slot == 1 ? 0x1 : 0);
    for (std::uint32_t slot = 0; slot < slots; ++slot) index.u32(slot == 1 ? 1 : 0);
    for (std::uint32_t column = 0; column < columns; ++column) index.u32(column == 0 ? 1 : 99);
    for (std::uint32_t column = 0; column < columns; ++column) index.u32(7);
    WorkBudget budget;
    return find_in_package_index(index.get(), 0x1, budget).has_value();
  };
  EXPECT_TRUE(found_with(1, 1, 2));
  EXPECT_TRUE(found_with(16, 2, 2));
  EXPECT_FALSE(found_with(17, 1, 2));
  EXPECT_FALSE(found_with(0, 1, 2));
  EXPECT_FALSE(found_with(1, 3, 2));
  EXPECT_FALSE(found_with(1, 0, 2)) << "the row is behind the last one";
  EXPECT_FALSE(found_with(1, 1, 3)) << "slots are a power of two";
}

}  // namespace

}  // namespace ddprof
