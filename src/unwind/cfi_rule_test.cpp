#include "unwind/cfi_rule.hpp"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "unwind/cfi_index.hpp"

namespace ddprof {
namespace {

using RegisterKind = CfiRegisterRule::Kind;

class Expression {
 public:
  Expression(std::initializer_list<int> values) {  // NOLINT: reads as an expression
    for (const int value : values) bytes_.push_back(static_cast<std::byte>(value));
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// A row of x86-64: CFA = rsp + 64, the return address below it.
class CfiRuleTest : public testing::Test {
 protected:
  CfiRuleTest() {
    state_.cfa = {.kind = CfaRule::Kind::register_plus, .register_number = 7, .offset = 64};
    state_.return_address = {.kind = RegisterKind::at_cfa, .value = -8};
    cie_.return_register = 16;
  }
  void make_aarch64() {
    architecture_ = Architecture::aarch64;
    cie_.return_register = 30;
    state_.cfa.register_number = 31;
    state_.return_address = {};
  }
  void make_i386() {
    architecture_ = Architecture::i386;
    cie_.return_register = 8;
    state_.cfa.register_number = 4;
    state_.return_address.value = -4;
  }
  [[nodiscard]] ddprof_unwind_rule rule() const { return to_unwind_rule(state_, cie_, architecture_); }
  void expect_cfa(unsigned cfa, std::int32_t offset) const {
    EXPECT_EQ(rule().cfa, cfa);
    EXPECT_EQ(rule().cfa_offset, offset);
  }
  void expect_saved(unsigned fp, unsigned ra, int offset) const {
    EXPECT_NE(rule().cfa, DDPROF_CFA_UNSUPPORTED);
    EXPECT_EQ(rule().fp_ra, fp | ra << 4U);
    EXPECT_EQ(rule().fp_offset, offset);
  }
  [[nodiscard]] bool is_supported() const { return rule().cfa != DDPROF_CFA_UNSUPPORTED; }
  // With a CFA that an expression computes.
  [[nodiscard]] bool is_supported(const Expression& cfa) {
    state_.cfa = {.kind = CfaRule::Kind::expression, .expression = cfa.bytes()};
    return is_supported();
  }

  CfiState state_;
  Cie cie_;
  Architecture architecture_ = Architecture::x86_64;
};

TEST_F(CfiRuleTest, TheUsualRows) {
  expect_cfa(DDPROF_CFA_SP, 64);
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_CFA_MINUS_8, 0);
  state_.fp = {.kind = RegisterKind::at_cfa, .value = -64};
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, -64);
  state_.fp.value = -72;  // popped already
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_CFA_MINUS_8, 0);
  state_.cfa.register_number = 6;  // below the frame pointer there may be anything
  expect_cfa(DDPROF_CFA_FP, 64);
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, -72);
}

TEST_F(CfiRuleTest, RowsOfI386HaveItsNumbersAndWords) {
  make_i386();
  expect_cfa(DDPROF_CFA_SP, 64);
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_CFA_MINUS_8, 0);
  state_.fp = {.kind = RegisterKind::at_cfa, .value = -8};
  state_.cfa.register_number = 5;
  expect_cfa(DDPROF_CFA_FP, 64);
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, -8);
  state_.cfa.register_number = 6;  // esi, not the frame pointer of x86-64
  expect_cfa(DDPROF_CFA_REGISTER + 6, 64);
  state_.return_address.value = -8;
  state_.fp = {};
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_FP_OFFSET, -8);
  state_.return_address.value = -4;
  // A frame that was aligned: CFA = *(ebp - 4), ebp at ebp.
  const Expression cfa = {DW_OP_breg5, 0x7c, DW_OP_deref};
  const Expression fp = {DW_OP_breg5, 0};
  state_.fp = {.kind = RegisterKind::at_expression, .expression = fp.bytes()};
  EXPECT_TRUE(is_supported(cfa));
  expect_cfa(DDPROF_CFA_DEREF_FP, 0xfffc);
  expect_saved(DDPROF_FP_AT_FP, DDPROF_RA_AT_CFA_MINUS_8, 0);
  // The .plt that ld makes: esp + 4 + ((eip & 15) >= 11) * 4. That of x86-64 is none of i386.
  state_.fp = {};
  EXPECT_TRUE(is_supported({DW_OP_breg4, 4, DW_OP_breg8, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
                            DW_OP_lit2, DW_OP_shl, DW_OP_plus}));
  EXPECT_FALSE(is_supported({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
                             DW_OP_lit3, DW_OP_shl, DW_OP_plus}));
}

TEST_F(CfiRuleTest, ReturnAddressesElsewhere) {
  state_.return_address.value = -16;
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_FP_OFFSET, -16);
  state_.fp = {.kind = RegisterKind::at_cfa, .value = -24};
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AFTER_FP, -24);
  state_.fp.value = -32;
  EXPECT_FALSE(is_supported()) << "two offsets";
  state_.fp = {};
  state_.return_address = {.kind = RegisterKind::in_register, .value = 5};
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_IN_REGISTER, 5);
  state_.return_address.value = std::int64_t{Registers::kCount} - 1;
  EXPECT_TRUE(is_supported());
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{Registers::kCount}}) {
    state_.return_address.value = number;
    EXPECT_FALSE(is_supported()) << number;
  }
  state_.return_address.value = 0;
  EXPECT_TRUE(is_supported());
  state_.fp = {.kind = RegisterKind::at_cfa, .value = -24};
  EXPECT_FALSE(is_supported()) << "a number and an offset";
  state_.fp = {};
  for (const RegisterKind kind :
       {RegisterKind::unspecified, RegisterKind::cfa_plus, RegisterKind::value_expression}) {
    state_.return_address = {.kind = kind};
    EXPECT_FALSE(is_supported());
  }
}

TEST_F(CfiRuleTest, RegistersThatTheCfaHangsOn) {
  state_.cfa.register_number = Registers::kCount - 1;
  expect_cfa(static_cast<unsigned>(DDPROF_CFA_REGISTER + Registers::kCount - 1), 64);
  state_.cfa.register_number = Registers::kCount;
  EXPECT_FALSE(is_supported());
  state_.cfa.register_number = 3;
  state_.cfa.offset = std::int64_t{1} << 31U;
  EXPECT_FALSE(is_supported());
  state_.cfa = {};
  EXPECT_FALSE(is_supported());
}

TEST_F(CfiRuleTest, LinkRegistersOfAarch64) {
  make_aarch64();
  expect_cfa(DDPROF_CFA_SP, 64);
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_IN_LINK_REGISTER, 0);
  state_.return_address = {.kind = RegisterKind::at_cfa, .value = -64};
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_AT_FP_OFFSET, -64);
  state_.return_address.value = -72;  // popped already
  expect_saved(DDPROF_FP_SAME, DDPROF_RA_IN_LINK_REGISTER, 0);
  state_.return_address = {};
  cie_.return_register = 29;
  EXPECT_FALSE(is_supported()) << "unchanged, and not in the link register";
  cie_.return_register = 30;
  architecture_ = Architecture::x86_64;
  state_.cfa.register_number = 7;
  EXPECT_FALSE(is_supported()) << "x86-64 has none";
}

TEST_F(CfiRuleTest, SignalFramesAndEndsComeFirst) {
  cie_.is_signal_frame = true;
  expect_cfa(DDPROF_CFA_SIGNAL_FRAME, 0);
  cie_.is_signal_frame = false;
  state_.return_address = {.kind = RegisterKind::undefined};
  expect_cfa(DDPROF_CFA_END, 0);
  state_.return_address = {.kind = RegisterKind::at_cfa, .value = -8};
  state_.sp_is_cfa = false;
  EXPECT_FALSE(is_supported());
}

TEST_F(CfiRuleTest, ConstantsOfEverySize) {
  for (const Expression& expression : {
           Expression{DW_OP_breg3, 8, DW_OP_lit16, DW_OP_plus},
           Expression{DW_OP_breg3, 55, DW_OP_lit31, DW_OP_minus},
           Expression{DW_OP_breg3, 24, DW_OP_lit0, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_const1u, 16, DW_OP_plus},
           Expression{DW_OP_breg3, 40, DW_OP_const1s, 0xf0, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_const2u, 16, 0, DW_OP_plus},
           Expression{DW_OP_breg3, 40, DW_OP_const2s, 0xf0, 0xff, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_const4u, 16, 0, 0, 0, DW_OP_plus},
           Expression{DW_OP_breg3, 40, DW_OP_const4s, 0xf0, 0xff, 0xff, 0xff, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_const8u, 16, 0, 0, 0, 0, 0, 0, 0, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_const8s, 16, 0, 0, 0, 0, 0, 0, 0, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_constu, 16, DW_OP_plus},
           Expression{DW_OP_breg3, 40, DW_OP_consts, 0x70, DW_OP_plus},
           Expression{DW_OP_breg3, 8, DW_OP_plus_uconst, 16},
           Expression{DW_OP_bregx, 3, 24},
       }) {
    ASSERT_TRUE(is_supported(expression));
    expect_cfa(DDPROF_CFA_REGISTER + 3, 24);
  }
}

TEST_F(CfiRuleTest, ExpressionsOfOtherForms) {
  EXPECT_FALSE(is_supported(Expression{}));
  EXPECT_FALSE(is_supported({DW_OP_breg3, 8, DW_OP_const2u, 16})) << "it breaks off";
  EXPECT_FALSE(is_supported({DW_OP_breg3, 8, DW_OP_breg7, 8})) << "two registers";
  EXPECT_FALSE(is_supported({DW_OP_lit8, DW_OP_breg7, 8})) << "a register on top of a constant";
  EXPECT_FALSE(is_supported({DW_OP_breg3, 8, DW_OP_deref})) << "only rsp and rbp lead to it";
  EXPECT_TRUE(is_supported({DW_OP_breg7, 8, DW_OP_deref}));
  EXPECT_FALSE(is_supported({DW_OP_breg7, 0x80, 0x80, 2, DW_OP_deref})) << "32,768 bytes";
  EXPECT_FALSE(is_supported({DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 0x80, 0x80, 2}));
}

// The stub of lazy binding: rsp + 8 + (((rip & 15) >= threshold) << 3).
TEST_F(CfiRuleTest, TheStubOfLazyBinding) {
  const auto stub = [](int rsp, int offset, int rip, int mask, int and_, int threshold, int compare,
                       int shift, int shl, int plus) {
    return Expression{rsp, offset, rip, 0, mask, and_, threshold, compare, shift, shl, plus};
  };
  constexpr int kRsp = DW_OP_breg7, kRip = DW_OP_breg16, k15 = DW_OP_lit15, k3 = DW_OP_lit3;
  const Expression last =
      stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit16, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus);
  ASSERT_TRUE(is_supported(last));
  expect_cfa(DDPROF_CFA_PLT, 16);
  for (const Expression& other : {
           stub(DW_OP_breg6, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 16, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRsp, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, DW_OP_lit14, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_or, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit17, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_dup, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_gt, k3, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit2, DW_OP_shl, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shr, DW_OP_plus),
           stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_minus),
           Expression{kRsp, 8, kRip, 0, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl},
           Expression{kRsp, 8, kRip, 0, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus,
                      DW_OP_nop},
           Expression{kRsp, 8, kRip, 0, k15, DW_OP_and, DW_OP_const1s, 0xff, DW_OP_ge, k3, DW_OP_shl,
                      DW_OP_plus},
       })
    EXPECT_FALSE(is_supported(other));
  make_aarch64();
  EXPECT_FALSE(
      is_supported(stub(kRsp, 8, kRip, k15, DW_OP_and, DW_OP_lit11, DW_OP_ge, k3, DW_OP_shl, DW_OP_plus)));
}

TEST_F(CfiRuleTest, SlotsThatExpressionsCompute) {
  const auto save_fp_at = [this](const Expression& place) {
    state_.fp = {.kind = RegisterKind::at_expression, .expression = place.bytes()};
    return is_supported();
  };
  const Expression beside_cfa{DW_OP_plus_uconst, 8};
  ASSERT_TRUE(save_fp_at(beside_cfa));
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, 8);
  const Expression beside_sp{DW_OP_breg7, 16};
  ASSERT_TRUE(save_fp_at(beside_sp));
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, 16 - 64);
  const Expression beside_fp{DW_OP_breg6, 16};
  ASSERT_TRUE(save_fp_at(beside_fp));
  expect_saved(DDPROF_FP_AT_FP, DDPROF_RA_AT_CFA_MINUS_8, 16);
  const Expression beside_other{DW_OP_breg3, 16};
  EXPECT_FALSE(save_fp_at(beside_other));
  const Expression dereferenced{DW_OP_breg6, 16, DW_OP_deref};
  EXPECT_FALSE(save_fp_at(dereferenced));
  state_.cfa.register_number = 6;
  ASSERT_TRUE(save_fp_at(beside_fp));
  expect_saved(DDPROF_FP_AT_CFA, DDPROF_RA_AT_CFA_MINUS_8, 16 - 64);
  EXPECT_FALSE(save_fp_at(beside_sp)) << "at no constant distance from the CFA";
}

ElfSegment executable(std::uint64_t begin, std::uint64_t size) {
  return {.type = 1, .flags = 5, .offset = 0, .vaddr = begin, .filesz = size, .memsz = size, .alignment = 1};
}

TEST(CodeRanges, HoldTheCodeOfAllExecutableSegments) {
  std::vector<ElfSegment> segments = {executable(0x2000, 0x1000), executable(0x1000, 0x800),
                                      executable(0x9000, 0), executable(~std::uint64_t{0}, 2)};
  segments.push_back(executable(0x5000, 0x1000));
  segments.back().flags = 4;
  segments.push_back(executable(0x7000, 0x1000));
  segments.back().type = 2;
  const CodeRanges code(segments);
  EXPECT_EQ(code.begin(), 0x1000U);
  EXPECT_EQ(code.bytes(), 0x1800U);
  for (const std::uint64_t inside : {0x1000U, 0x17ffU, 0x2000U, 0x2fffU})
    EXPECT_TRUE(code.contains(inside)) << inside;
  for (const std::uint64_t outside : {0U, 0xfffU, 0x1800U, 0x1fffU, 0x3000U, 0x5000U, 0x7000U, 0x9000U})
    EXPECT_FALSE(code.contains(outside)) << outside;
}

TEST(CodeRanges, ManyAreOne) {
  std::vector<ElfSegment> segments;
  for (std::uint64_t at = 0; at < 64; ++at) segments.push_back(executable(0x1000 + at * 0x1000, 0x100));
  EXPECT_FALSE(CodeRanges(segments).contains(0x1800));
  segments.push_back(executable(0x1000 + 64 * 0x1000, 0x100));
  EXPECT_TRUE(CodeRanges(segments).contains(0x1800)) << "what lies between them counts as code";
}

}  // namespace
}  // namespace ddprof
