#include "symbol/dwarf/address_ranges.hpp"

#include <gtest/gtest.h>

#include "symbol/dwarf/dwarf_file.hpp"
#include "symbol/dwarf/dwarf_test_bytes.hpp"

namespace ddprof {
namespace {

using A = DwarfAttribute;
using F = DwarfForm;
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// The ranges of a root entry that begins at 0x1000.
Ranges ranges_of(DwarfImage& image, bool is_version_5) {
  const auto entry = DwarfBytes().uleb(1).u64(0x1000).u32(0);
  image
      .section(".debug_abbrev",
               DwarfBytes()
                   .abbreviation(1, DwarfTag{0x11}, false, A::low_pc, F::addr, A::ranges, F::sec_offset)
                   .u8(0))
      .section(".debug_info", is_version_5 ? DwarfBytes::unit_5(entry) : DwarfBytes::unit_4(entry));
  const ElfFile elf = image.file();
  DwarfProblem problem;
  WorkBudget budget;
  DwarfFile file(elf, DwarfSections::Kind::whole, problem, budget);
  const auto unit = file.unit_at(0);
  RangeList list(*unit, unit->root().ranges);
  Ranges ranges;
  for (AddressRange range; list.next(range);) ranges.emplace_back(range.begin, range.end);
  return ranges;
}

TEST(RangeList, AddsTheBaseOfTheUnitOrTheOneThatIsChosen) {
  DwarfImage image;
  image.section(".debug_ranges", DwarfBytes()
                                     .u64(0x10)
                                     .u64(0x20)
                                     .u64(0x30)
                                     .u64(0x30)  // nothing
                                     .u64(~std::uint64_t{0})
                                     .u64(0x2000)
                                     .u64(1)
                                     .u64(2)
                                     .u64(0)
                                     .u64(0)
                                     .u64(5)
                                     .u64(6));
  EXPECT_EQ(ranges_of(image, false), (Ranges{{0x1010, 0x1020}, {0x2001, 0x2002}}));
}

TEST(RangeList, KnowsEveryEntryOfVersion5) {
  DwarfImage image;
  image.section(".debug_addr", DwarfBytes().u32(0).u16(5).u8(8).u8(0).u64(0x1100).u64(0x1200).u64(0x1300))
      .section(".debug_rnglists", DwarfBytes()
                                      .list({4, 1, 2})  // offset_pair from 0x1000
                                      .list({1, 0})     // base_addressx 0x1100
                                      .list({4, 3, 4})
                                      .list({2, 1, 2})     // startx_endx
                                      .list({3, 2, 0x10})  // startx_length
                                      .u8(5)
                                      .u64(0x2000)  // base_address
                                      .list({4, 5, 6})
                                      .u8(6)
                                      .u64(0x2100)
                                      .u64(0x2101)
                                      .u8(7)
                                      .u64(0x2200)
                                      .u8(9)
                                      .u8(0)
                                      .list({4, 1, 2}));
  EXPECT_EQ(ranges_of(image, true), (Ranges{{0x1001, 0x1002},
                                            {0x1103, 0x1104},
                                            {0x1200, 0x1300},
                                            {0x1300, 0x1310},
                                            {0x2005, 0x2006},
                                            {0x2100, 0x2101},
                                            {0x2200, 0x2209}}));
}

TEST(RangeList, EndsWhereTheSectionEnds) {
  DwarfImage image;
  image.section(".debug_rnglists", DwarfBytes().list({4, 1, 2, 4, 0x80}));
  EXPECT_EQ(ranges_of(image, true), (Ranges{{0x1001, 0x1002}}));
}

}  // namespace
}  // namespace ddprof
