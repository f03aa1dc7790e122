#include "symbol/dwarf/unit_index.hpp"

#include <gtest/gtest.h>

#include "symbol/dwarf/dwarf_test_bytes.hpp"

namespace ddprof {
namespace {

using A = DwarfAttribute;
using F = DwarfForm;

DwarfBytes unit_at(std::uint64_t begin, std::uint32_t size) {
  return DwarfBytes::unit_4(DwarfBytes().uleb(1).u64(begin).u32(size));
}

DwarfBytes aranges(std::uint32_t unit, std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges,
                   bool has_end = true) {
  DwarfBytes bytes = DwarfBytes().u16(2).u32(unit).u8(8).u8(0).u32(0);
  for (const auto& [begin, size] : ranges) bytes.u64(begin).u64(size);
  if (has_end) bytes.u64(0).u64(0);
  return bytes.with_length();
}

DwarfBytes plain_roots() {
  return DwarfBytes().abbreviation(1, DwarfTag{0x11}, false, A::low_pc, F::addr, A::high_pc, F::data4).u8(0);
}

// The units of addresses, -1 where there is none.
std::vector<int> units_of(DwarfImage& image, std::initializer_list<std::uint64_t> addresses,
                          const DwarfBytes& abbreviations = plain_roots()) {
  image.section(".debug_abbrev", abbreviations);
  const ElfFile elf = image.file();
  DwarfProblem problem;
  WorkBudget budget;
  DwarfFile file(elf, DwarfSections::Kind::whole, problem, budget);
  const UnitIndex index = UnitIndex::build(file, CodeBounds::of(elf));
  std::vector<int> units;
  for (const std::uint64_t address : addresses) {
    const auto unit = index.find(address);
    units.push_back(unit ? static_cast<int>(*unit) : -1);
  }
  return units;
}

TEST(UnitIndex, TakesRangesFromTheTableAndFromUnitsThatAreNotInIt) {
  DwarfImage image;
  image.section(".debug_info", unit_at(0x1000, 0x800).bytes(unit_at(0x2000, 0x10)))
      .section(".debug_aranges", aranges(0, {{0x1000, 0x10}, {0x1100, 0x10}}));
  EXPECT_EQ(units_of(image, {0xfff, 0x1000, 0x100f, 0x1010, 0x1100, 0x2000, 0x200f, 0x2010}),
            (std::vector<int>{-1, 0, 0, -1, 0, 1, 1, -1}));
}

TEST(UnitIndex, ASetEndsWhereItsLengthSaysAlsoWithoutAnEmptyPair) {
  const DwarfBytes first = unit_at(0x1000, 0x800);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes(first).bytes(unit_at(0x2000, 0x10)))
      .section(".debug_aranges",
               aranges(0, {{0x1000, 0x10}}, false)
                   .bytes(aranges(static_cast<std::uint32_t>(first.size()), {{0x1100, 0x10}})));
  EXPECT_EQ(units_of(image, {0x1000, 0x1100, 0x110f, 0x1110}), (std::vector<int>{0, 1, 1, -1}));
}

TEST(UnitIndex, GivesCodeThatSeveralUnitsClaimToTheFirst) {
  DwarfImage image;
  image.section(".debug_info", unit_at(0x1100, 0x100)
                                   .bytes(unit_at(0x1000, 0x400))
                                   .bytes(unit_at(0x1180, 0x200))
                                   .bytes(unit_at(0x1100, 0x100)));
  EXPECT_EQ(units_of(image, {0x10ff, 0x1100, 0x11ff, 0x1200, 0x137f, 0x13ff, 0x1400}),
            (std::vector<int>{1, 0, 0, 1, 1, 1, -1}));
}

TEST(UnitIndex, LeavesOutWhatTheLinkerThrewAway) {
  DwarfImage image;
  image.section(".debug_info", unit_at(0, 0x2000).bytes(unit_at(~std::uint64_t{0}, 0x2000)));
  EXPECT_EQ(units_of(image, {0x1000, 0x1fff}), (std::vector<int>{-1, -1}));
}

TEST(UnitIndex, AnEmptyRangeIsNotTheEndOfASet) {
  DwarfImage image;
  image.section(".debug_info", unit_at(0x1000, 0x800))
      .section(".debug_aranges", aranges(0, {{0x1000, 0}, {0, 0x10}, {0x1100, 0x10}}));
  EXPECT_EQ(units_of(image, {0x1000, 0x1100, 0x110f}), (std::vector<int>{-1, 0, 0}));
}

TEST(UnitIndex, ReadsAddressesOfFourBytesAndSetsOf64Bits) {
  const auto narrow =
      DwarfBytes().u16(2).u32(0).u8(4).u8(0).u32(0).u32(0x1100).u32(0x10).u32(0).u32(0).with_length();
  DwarfImage first;
  first.section(".debug_info", unit_at(0x1000, 0x800)).section(".debug_aranges", narrow);
  EXPECT_EQ(units_of(first, {0x1000, 0x1100, 0x110f, 0x1110}), (std::vector<int>{-1, 0, 0, -1}));
  const auto wide = DwarfBytes().u16(2).u64(0).u8(8).u8(0).u64(0).u64(0x1100).u64(0x10).u64(0).u64(0);
  DwarfImage second;
  second.section(".debug_info", unit_at(0x1000, 0x800))
      .section(".debug_aranges", DwarfBytes().u32(0xffffffff).u64(wide.size()).bytes(wide));
  EXPECT_EQ(units_of(second, {0x1000, 0x1100, 0x110f, 0x1110}), (std::vector<int>{-1, 0, 0, -1}));
}

TEST(UnitIndex, LeavesOutSetsThatMakeNoSense) {
  const auto set_with = [](unsigned unit, unsigned size, unsigned segment) {
    return DwarfBytes()
        .u16(2)
        .u32(unit)
        .u8(size)
        .u8(segment)
        .u32(0)
        .u64(0x1900)
        .u64(0x10)
        .u64(0)
        .u64(0)
        .with_length();
  };
  for (const DwarfBytes& set :
       {set_with(7, 8, 0), set_with(0, 2, 0), set_with(0, 8, 1), set_with(999, 8, 0)}) {
    DwarfImage image;
    image.section(".debug_info", unit_at(0x1000, 0x800)).section(".debug_aranges", set);
    EXPECT_EQ(units_of(image, {0x1000, 0x17ff, 0x1900}), (std::vector<int>{0, 0, -1}))
        << "as the unit says itself";
  }
}

// Assembler has no functions in its debug information, and old compilers tell only where a unit begins.
TEST(UnitIndex, TakesTheLinesOfUnitsThatDoNotSayWhereTheyEnd) {
  const auto header = DwarfBytes()
                          .list({1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1})
                          .u8(0)
                          .text("a.S")
                          .list({0, 0, 0})
                          .u8(0);
  DwarfBytes program;
  for (const std::uint64_t begin : {0x1100U, 0x1200U})
    program.list({0, 9, 2}).u64(begin).list({1, 2, 8, 1, 2, 8, 0, 1, 1});  // two rows of 8 bytes
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(DwarfBytes().uleb(1).u64(0x1000).u32(0)))
      .section(".debug_line",
               DwarfBytes().u16(2).u32(header.size()).bytes(header).bytes(program).with_length());
  const auto abbreviations =
      DwarfBytes().abbreviation(1, DwarfTag{0x11}, false, A::low_pc, F::addr, A::stmt_list, F::data4).u8(0);
  EXPECT_EQ(units_of(image, {0x1000, 0x10ff, 0x1100, 0x110f, 0x1110, 0x1200, 0x120f, 0x1210}, abbreviations),
            (std::vector<int>{-1, -1, 0, 0, -1, 0, 0, -1}));
}

TEST(UnitIndex, WhatDwzMovedOutOfUnitsHasNoCode) {
  DwarfImage image;
  image.section(".debug_info", unit_at(0x1000, 0x10));
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, DwarfTag::partial_unit, false, A::low_pc, F::addr, A::high_pc, F::data4)
          .u8(0);
  EXPECT_EQ(units_of(image, {0x1000}, abbreviations), (std::vector<int>{-1}));
}

}  // namespace
}  // namespace ddprof
