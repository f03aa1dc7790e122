#include "unwind/compile.hpp"

#include <gtest/gtest.h>

#include "unwind/cfi_test_bytes.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kGenerated = 0x7f0000001000;

// Pushes one register at its first byte; addresses are relative, as JIT compilers write them.
CfiBytes frames_of(std::uint64_t code, std::uint32_t size, std::uint64_t vaddr) {
  EhFrame frames;
  const auto cie = frames.add_cie({.augmentation_data = {0x1b}});  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
  const std::uint64_t field = vaddr + frames.next_pointer_offset();
  frames.add_fde_with_pointers(cie, CfiBytes().u32(static_cast<std::uint32_t>(code - field)).u32(size),
                               {0x41, 0x0e, 16});
  return frames.data();
}

class CompileGenerated : public testing::Test {
 protected:
  std::int32_t cfa_at(std::uint64_t address) {
    const auto rule = dictionary_[table_.find(address)];
    return rule.cfa == DDPROF_CFA_SP ? rule.cfa_offset : -rule.cfa;
  }
  void compile(std::vector<GeneratedCode> pieces) {
    table_ = compile_generated_code(pieces, Architecture::x86_64, dictionary_);
  }

  static constexpr std::int32_t kGap = -DDPROF_CFA_GAP;
  RuleDictionary dictionary_;
  UnwindTable table_;
};

TEST_F(CompileGenerated, JoinsThePiecesOfAProcessAndLeavesGapsBetweenThem) {
  const CfiBytes first = frames_of(kGenerated, 0x20, kGenerated + 0x20);
  const CfiBytes second = frames_of(kGenerated + 0x100, 0x10, kGenerated + 0x110);
  compile({{kGenerated, kGenerated + 0x20, 0, kGenerated + 0x20, first.bytes()},
           {kGenerated + 0x40, kGenerated + 0x60, 0, kGenerated + 0x60, {}},
           {kGenerated + 0x100, kGenerated + 0x110, 0, kGenerated + 0x110, second.bytes()}});
  EXPECT_EQ(cfa_at(kGenerated - 1), kGap);
  EXPECT_EQ(cfa_at(kGenerated), 8);
  EXPECT_EQ(cfa_at(kGenerated + 1), 16);
  EXPECT_EQ(cfa_at(kGenerated + 0x1f), 16);
  EXPECT_EQ(cfa_at(kGenerated + 0x20), kGap);
  EXPECT_EQ(cfa_at(kGenerated + 0x50), kGap);
  EXPECT_EQ(cfa_at(kGenerated + 0x100), 8);
  EXPECT_EQ(cfa_at(kGenerated + 0x10f), 16);
  EXPECT_EQ(cfa_at(kGenerated + 0x110), kGap);
  EXPECT_EQ(table_.counters().bad_entries + table_.counters().stray_entries, 0U);
}

TEST_F(CompileGenerated, FollowsCodeThatWasMovedEitherWay) {
  const CfiBytes frames = frames_of(kGenerated, 0x20, kGenerated + 0x20);
  const auto back = ~std::uint64_t{0x800} + 1;
  compile({{kGenerated - 0x800, kGenerated - 0x7e0, back, kGenerated + 0x20, frames.bytes()},
           {kGenerated, kGenerated + 0x20, 0, kGenerated + 0x20, frames.bytes()},
           {kGenerated + 0x5000, kGenerated + 0x5020, 0x5000, kGenerated + 0x20, frames.bytes()}});
  for (const std::uint64_t start : {kGenerated - 0x800, kGenerated, kGenerated + 0x5000}) {
    EXPECT_EQ(cfa_at(start), 8);
    EXPECT_EQ(cfa_at(start + 0x1f), 16);
    EXPECT_EQ(cfa_at(start + 0x20), kGap);
  }
}

TEST_F(CompileGenerated, KeepsWithinThePieceWhateverItsFramesSay) {
  const CfiBytes wide = frames_of(kGenerated, 0x1000, kGenerated + 0x20);
  const CfiBytes elsewhere = frames_of(kGenerated + 0x9000, 0x20, kGenerated + 0x60);
  compile({{kGenerated, kGenerated + 0x20, 0, kGenerated + 0x20, wide.bytes()},
           {kGenerated + 0x40, kGenerated + 0x60, 0, kGenerated + 0x60, elsewhere.bytes()},
           {kGenerated + 0x50, kGenerated + 0x40, 0, 0, wide.bytes()},
           {kGenerated + 0x100, kGenerated + 0x110, 0, 0, {}}});
  EXPECT_EQ(cfa_at(kGenerated + 0x1f), 16);
  EXPECT_EQ(cfa_at(kGenerated + 0x20), kGap);
  EXPECT_EQ(cfa_at(kGenerated + 0x48), kGap);
  EXPECT_GE(table_.counters().stray_entries, 1U);
}

TEST_F(CompileGenerated, NothingGivesAnEmptyTable) {
  compile({});
  EXPECT_TRUE(table_.empty());
}

}  // namespace
}  // namespace ddprof
