// Unwind tables from the function tables of Go programs.
#include <gtest/gtest.h>

#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kGoCode = 0x1000;
constexpr std::uint32_t kGo118 = 0xfffffff0;
constexpr std::uint32_t kGo120 = 0xfffffff1;
constexpr std::uint64_t kHeaderBytes = 72;

// A table with functions of 0x100 bytes each.
class GoTable {
 public:
  explicit GoTable(std::uint32_t magic = kGo118) : magic_(magic) {}

  void add(std::uint8_t flags, const CfiBytes& stack_sizes, std::string_view name = "") {
    flags_.push_back(flags);
    names_.push_back(static_cast<std::uint32_t>(name_bytes_.size()));
    for (const char letter : name) name_bytes_.u8(static_cast<unsigned char>(letter));
    name_bytes_.u8(0);
    offsets_.push_back(static_cast<std::uint32_t>(sequences_.size()));
    sequences_.append(stack_sizes);
  }

  [[nodiscard]] CfiBytes bytes() const {
    const std::size_t count = flags_.size();
    CfiBytes table;
    CfiBytes descriptions;
    const std::size_t entries = count * 8 + 4;
    for (std::size_t i = 0; i < count; ++i) {
      table.u32(static_cast<std::uint32_t>(i * 0x100))
          .u32(static_cast<std::uint32_t>(entries + descriptions.size()));
      descriptions.u32(0).u32(names_[i]).u32(0).u32(0).u32(offsets_[i]);
      for (int skipped = 0; skipped < (magic_ == kGo120 ? 5 : 4); ++skipped) descriptions.u32(0);
      descriptions.u8(0).u8(flags_[i]).u16(0);
    }
    table.u32(static_cast<std::uint32_t>(count * 0x100)).append(descriptions);
    CfiBytes all;
    const std::size_t sequences = kHeaderBytes + name_bytes_.size();
    all.u32(magic_).u16(0).u8(1).u8(8).u64(count).u64(0).u64(kGoCode).u64(kHeaderBytes).u64(0).u64(0);
    all.u64(sequences).u64(sequences + sequences_.size()).append(name_bytes_).append(sequences_);
    all.append(table);
    return all;
  }

 private:
  std::uint32_t magic_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> names_;
  CfiBytes name_bytes_;
  CfiBytes sequences_ = {0xff};  // offset 0 means none
};

// A change of the stack's size, by half a zigzag, and the bytes of code that follow it.
CfiBytes usual_function() {
  CfiBytes sizes;
  sizes.uleb(2).uleb(4);              // from -1 to 0
  sizes.uleb(2 * 24).uleb(0xf0);      // 24 more
  sizes.uleb(2 * 24 - 1).uleb(0x0c);  // and back
  return sizes.u8(0);
}

class CompileGo : public testing::TestWithParam<std::uint32_t> {
 protected:
  ddprof_unwind_rule rule_at(const GoTable& go, std::uint64_t address, const CfiBytes& debug_frame = {}) {
    const TestElf elf({}, debug_frame, EM_X86_64, kGoCode, 0x10000, go.bytes());
    table_ = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary_);
    return dictionary_[table_.find(address)];
  }

  RuleDictionary dictionary_;
  UnwindTable table_;
};

INSTANTIATE_TEST_SUITE_P(Versions, CompileGo, testing::Values(kGo118, kGo120));

TEST_P(CompileGo, FollowsTheSizeOfTheStack) {
  GoTable go(GetParam());
  go.add(0, usual_function());
  EXPECT_EQ(rule_at(go, kGoCode).cfa, DDPROF_CFA_SP);
  EXPECT_EQ(rule_at(go, kGoCode).cfa_offset, 8);
  EXPECT_EQ(rule_at(go, kGoCode).fp_ra, DDPROF_FP_SAME);
  const ddprof_unwind_rule body = rule_at(go, kGoCode + 4);
  EXPECT_EQ(body.cfa_offset, 32);
  EXPECT_EQ(body.fp_ra, DDPROF_FP_AT_CFA);
  EXPECT_EQ(body.fp_offset, -16);
  EXPECT_EQ(rule_at(go, kGoCode + 0xf3).cfa_offset, 32);
  EXPECT_EQ(rule_at(go, kGoCode + 0xf4).cfa_offset, 8);
  EXPECT_EQ(rule_at(go, kGoCode + 0x100).cfa, DDPROF_CFA_GAP);
  EXPECT_EQ(table_.counters().bad_entries, 0U);
}

TEST_P(CompileGo, EndsWhereTheRuntimeMovesToAnotherStackAndAtOutermostFunctions) {
  GoTable go(GetParam());
  go.add(1, usual_function());
  go.add(2, usual_function());
  go.add(4, usual_function());  // assembly
  EXPECT_EQ(rule_at(go, kGoCode + 0x10).cfa, DDPROF_CFA_END);
  EXPECT_EQ(rule_at(go, kGoCode + 0x110).cfa, DDPROF_CFA_END);
  EXPECT_EQ(rule_at(go, kGoCode + 0x210).cfa, DDPROF_CFA_SP);
}

TEST_P(CompileGo, GoesOnWhereTheRuntimeKeepsTheFramePointerOfWhoAsked) {
  GoTable go(GetParam());
  go.add(2, usual_function(), "runtime.systemstack");
  go.add(2, usual_function(), "runtime.asmcgocall.abi0");
  go.add(2, usual_function(), "runtime.systemstack_switch");
  go.add(0, usual_function(), "runtime.systemstack");
  EXPECT_EQ(rule_at(go, kGoCode + 0x10).cfa, DDPROF_CFA_GO_SWITCH);
  EXPECT_EQ(rule_at(go, kGoCode + 0x110).cfa, DDPROF_CFA_GO_SWITCH);
  EXPECT_EQ(rule_at(go, kGoCode + 0x210).cfa, DDPROF_CFA_END);
  EXPECT_EQ(rule_at(go, kGoCode + 0x310).cfa, DDPROF_CFA_SP);
}

TEST_P(CompileGo, LeavesAGapWhereASequenceEndsEarly) {
  GoTable go(GetParam());
  go.add(0, CfiBytes().uleb(2).uleb(0x20).u8(0));
  EXPECT_EQ(rule_at(go, kGoCode + 0x1f).cfa_offset, 8);
  EXPECT_EQ(rule_at(go, kGoCode + 0x20).cfa, DDPROF_CFA_GAP);
}

TEST(CompileGoBadInput, UnknownVersionsAndCutTablesAreNoTables) {
  GoTable go;
  go.add(0, usual_function());
  const CfiBytes good = go.bytes();
  for (std::size_t size = 0; size < good.size(); ++size) {
    CfiBytes cut;
    for (const std::byte byte : good.bytes().first(size)) cut.u8(std::to_integer<unsigned>(byte));
    const TestElf elf({}, {}, EM_X86_64, kGoCode, 0x10000, cut);
    RuleDictionary dictionary;
    const UnwindTable table = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary);
    EXPECT_LE(table.row_count(), 4U);
  }
  GoTable other(0xfffffffa);
  other.add(0, usual_function());
  const TestElf elf({}, {}, EM_X86_64, kGoCode, 0x10000, other.bytes());
  RuleDictionary dictionary;
  EXPECT_TRUE(compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary).empty());
}

}  // namespace
}  // namespace ddprof
