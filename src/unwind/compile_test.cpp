#include "unwind/compile.hpp"

#include <dwarf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "unwind/cfi_test_bytes.hpp"

// Beside the C struct, where GoogleTest looks for them.
static bool operator==(const ddprof_unwind_rule& left, const ddprof_unwind_rule& right) {
  return left.cfa == right.cfa && left.fp_ra == right.fp_ra && left.fp_offset == right.fp_offset &&
         left.cfa_offset == right.cfa_offset;
}
static void PrintTo(const ddprof_unwind_rule& rule, std::ostream* out) {
  *out << "cfa " << int{rule.cfa} << " " << rule.cfa_offset << ", fp_ra " << int{rule.fp_ra} << " "
       << rule.fp_offset;
}

namespace ddprof {
namespace {

constexpr std::uint64_t kBegin = 0x2000;
constexpr std::uint64_t kSize = 0x100;

constexpr ddprof_unwind_rule rule(int cfa, std::int32_t cfa_offset, int fp = DDPROF_FP_SAME,
                                  int fp_offset = 0, int ra = DDPROF_RA_AT_CFA_MINUS_8) {
  return {static_cast<std::uint8_t>(cfa), static_cast<std::uint8_t>(fp | ra << 4),
          static_cast<std::int16_t>(fp_offset), cfa_offset};
}
constexpr ddprof_unwind_rule kGap = rule(DDPROF_CFA_GAP, 0);
constexpr ddprof_unwind_rule kEnd = rule(DDPROF_CFA_END, 0);
constexpr ddprof_unwind_rule kUnsupported = rule(DDPROF_CFA_UNSUPPORTED, 0);
constexpr ddprof_unwind_rule kEntry = rule(DDPROF_CFA_SP, 8);

constexpr std::int32_t halves(int low, int high) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(low) & 0xffffU) |
                                   static_cast<std::uint32_t>(high) << 16);
}

EhFrame::CieOptions aarch64_cie() {
  return {.augmentation = "zR",
          .code_alignment = 4,
          .return_register = 30,
          .instructions = {DW_CFA_def_cfa, 31, 0}};
}

EhFrame::CieOptions i386_cie() {
  return {.augmentation = "zR",
          .data_alignment = -4,
          .return_register = 8,
          .instructions = {DW_CFA_def_cfa, 4, 4, DW_CFA_offset | 8, 1}};
}

// The table of a hand-made file, with rules by address.
class Compiled {
 public:
  explicit Compiled(const EhFrame& frames, std::uint16_t machine = EM_X86_64)
      : Compiled(TestElf(frames.data(), {}, machine)) {}
  explicit Compiled(const TestElf& elf)
      : table(compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary)) {}

  [[nodiscard]] ddprof_unwind_rule at(std::uint64_t address) const { return dictionary[table.find(address)]; }

  RuleDictionary dictionary;
  UnwindTable table;
};

// One function at kBegin whose instructions are these.
Compiled one_function(const CfiBytes& instructions, const EhFrame::CieOptions& options = {},
                      std::uint16_t machine = EM_X86_64) {
  EhFrame frames;
  frames.add_fde(frames.add_cie(options), kBegin, kSize, instructions);
  return Compiled(frames, machine);
}

ddprof_unwind_rule only_rule(const CfiBytes& instructions, const EhFrame::CieOptions& options = {},
                             std::uint16_t machine = EM_X86_64) {
  return one_function(instructions, options, machine).at(kBegin);
}

CfiBytes cfa_expression(const CfiBytes& expression) {
  return CfiBytes{DW_CFA_def_cfa_expression}.block(expression);
}

TEST(Compile, GivesGapsOutsideOfEveryFunction) {
  EhFrame frames;
  const std::size_t cie = frames.add_cie({});
  frames.add_fde(cie, kBegin, 0x10, {});
  frames.add_fde(cie, kBegin + 0x20, 0x10, {});
  const Compiled compiled(frames);
  EXPECT_EQ(compiled.at(kBegin - 1), kGap);
  EXPECT_EQ(compiled.at(kBegin), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 0xf), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 0x10), kGap);
  EXPECT_EQ(compiled.at(kBegin + 0x1f), kGap);
  EXPECT_EQ(compiled.at(kBegin + 0x20), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 0x30), kGap);
  EXPECT_EQ(compiled.at(0), kGap);
  EXPECT_EQ(compiled.at(~std::uint64_t{0}), kGap);
  EXPECT_EQ(compiled.table.row_count(), 3U);
}

TEST(Compile, FollowsAPrologueThatSetsUpAFramePointer) {
  const Compiled compiled =
      one_function({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
                    DW_CFA_advance_loc1, 3, DW_CFA_def_cfa_register, 6});
  EXPECT_EQ(compiled.at(kBegin), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 1), rule(DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + 3), rule(DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + 4), rule(DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + kSize - 1), rule(DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16));
}

TEST(Compile, DropsRowsThatRepeatTheirPredecessor) {
  const Compiled compiled =
      one_function({DW_CFA_advance_loc | 1, DW_CFA_offset | 3, 4, DW_CFA_advance_loc | 1, DW_CFA_nop});
  EXPECT_EQ(compiled.table.row_count(), 1U);
}

TEST(Compile, UnderstandsEveryWayToAdvance) {
  CfiBytes instructions{DW_CFA_advance_loc1, 2, DW_CFA_def_cfa_offset, 16};
  instructions.u8(DW_CFA_advance_loc2).u16(0x10).append({DW_CFA_def_cfa_offset, 24});
  instructions.u8(DW_CFA_advance_loc4).u32(0x20).append({DW_CFA_def_cfa_offset, 32});
  instructions.u8(DW_CFA_MIPS_advance_loc8).u64(0x40).append({DW_CFA_def_cfa_offset, 40});
  instructions.u8(DW_CFA_set_loc).u64(kBegin + 0x90).append({DW_CFA_def_cfa_offset, 48});
  const Compiled compiled = one_function(instructions);
  EXPECT_EQ(compiled.at(kBegin + 0x1), rule(DDPROF_CFA_SP, 8));
  EXPECT_EQ(compiled.at(kBegin + 0x2), rule(DDPROF_CFA_SP, 16));
  EXPECT_EQ(compiled.at(kBegin + 0x12), rule(DDPROF_CFA_SP, 24));
  EXPECT_EQ(compiled.at(kBegin + 0x32), rule(DDPROF_CFA_SP, 32));
  EXPECT_EQ(compiled.at(kBegin + 0x72), rule(DDPROF_CFA_SP, 40));
  EXPECT_EQ(compiled.at(kBegin + 0x90), rule(DDPROF_CFA_SP, 48));
}

TEST(Compile, AdvancesMayStayButNotGoBack) {
  CfiBytes instructions;
  instructions.u8(DW_CFA_set_loc).u64(kBegin).append({DW_CFA_def_cfa_offset, 16});
  instructions.u8(DW_CFA_set_loc).u64(kBegin + 8).append({DW_CFA_def_cfa_offset, 24});
  instructions.u8(DW_CFA_set_loc).u64(kBegin + 4).append({DW_CFA_def_cfa_offset, 32});
  const Compiled compiled = one_function(instructions);
  EXPECT_EQ(compiled.at(kBegin), rule(DDPROF_CFA_SP, 16));
  EXPECT_EQ(compiled.at(kBegin + 7), rule(DDPROF_CFA_SP, 16));
  EXPECT_EQ(compiled.at(kBegin + 8), kGap);
}

TEST(Compile, RestoresRememberedStatesAndInitialRules) {
  const Compiled compiled = one_function(
      {DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_remember_state, DW_CFA_advance_loc | 1,
       DW_CFA_def_cfa_offset, 8, DW_CFA_restore | 6, DW_CFA_advance_loc | 1, DW_CFA_restore_state,
       DW_CFA_advance_loc | 1, DW_CFA_restore_extended, 6});
  EXPECT_EQ(compiled.at(kBegin), rule(DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + 1), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 2), rule(DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + 3), rule(DDPROF_CFA_SP, 16));
}

TEST(Compile, UnderstandsEveryWayToSaveTheFramePointer) {
  const CfiBytes frame{DW_CFA_def_cfa_offset, 64};
  const auto with = [&frame](const CfiBytes& more) { return only_rule(CfiBytes(frame).append(more)); };
  EXPECT_EQ(with({DW_CFA_offset_extended, 6, 3}), rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, -24));
  EXPECT_EQ(with(CfiBytes{DW_CFA_offset_extended_sf, 6}.sleb(4)),
            rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, -32));
  EXPECT_EQ(with(CfiBytes{DW_CFA_offset_extended_sf, 6}.sleb(-4)),
            rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, 32));
  EXPECT_EQ(with({DW_CFA_GNU_negative_offset_extended, 6, 2}), rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, 16));
  EXPECT_EQ(with({DW_CFA_same_value, 6}), rule(DDPROF_CFA_SP, 64));
  EXPECT_EQ(with({DW_CFA_undefined, 6}), rule(DDPROF_CFA_SP, 64));
  EXPECT_EQ(with({DW_CFA_GNU_args_size, 16}), rule(DDPROF_CFA_SP, 64));
}

TEST(Compile, SaysWhenTheFramePointerCannotBeExpressed) {
  EXPECT_EQ(only_rule({DW_CFA_register, 6, 9}), kUnsupported);
  EXPECT_EQ(only_rule({DW_CFA_val_offset, 6, 2}), kUnsupported);
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_val_offset_sf, 6}.sleb(2)), kUnsupported);
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_val_expression, 6}.block({DW_OP_breg7, 0})), kUnsupported);
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_offset_extended_sf, 6}.sleb(-40000)), kUnsupported);
  EXPECT_EQ(one_function({DW_CFA_register, 6, 9}).table.counters().unsupported_rows, 1U);
}

TEST(Compile, RefusesARuleWhereTheCallersStackPointerIsNotTheCfa) {
  EXPECT_EQ(only_rule({DW_CFA_register, 7, 8}), kUnsupported);
  EXPECT_EQ(only_rule({DW_CFA_val_offset, 7, 0}), kEntry);
}

TEST(Compile, RefusesAnOffsetThatTheRowCannotHold) {
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_def_cfa_offset}.uleb(0x7fffffff)), rule(DDPROF_CFA_SP, 0x7fffffff));
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_def_cfa_offset}.uleb(0x80000000)), kUnsupported);
}

TEST(Compile, TakesAPoppedFramePointerAsRestored) {
  const Compiled compiled = one_function(
      {DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 8});
  EXPECT_EQ(compiled.at(kBegin), rule(DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16));
  EXPECT_EQ(compiled.at(kBegin + 4), kEntry);
}

TEST(Compile, EndsWhereTheReturnAddressIsUndefined) { EXPECT_EQ(only_rule({DW_CFA_undefined, 16}), kEnd); }

TEST(Compile, KeepsTheReturnAddressThatVforkHoldsInARegister) {
  EXPECT_EQ(only_rule({DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 5}),
            rule(DDPROF_CFA_SP, 0, DDPROF_FP_SAME, 5, DDPROF_RA_IN_REGISTER));
}

TEST(Compile, NamesAnotherRegisterThatTheCfaHangsOn) {
  EXPECT_EQ(only_rule({DW_CFA_def_cfa, 10, 0}), rule(DDPROF_CFA_REGISTER + 10, 0));
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_def_cfa_sf, 7}.sleb(-3)), rule(DDPROF_CFA_SP, 24));
  EXPECT_EQ(only_rule(CfiBytes{DW_CFA_def_cfa_offset_sf}.sleb(-2)), rule(DDPROF_CFA_SP, 16));
  EXPECT_EQ(only_rule({DW_CFA_def_cfa, 40, 0}), kUnsupported);
}

TEST(Compile, RecognisesRealignedFrames) {
  // gcc's DRAP frame: CFA = *(rbp - 8), the caller's rbp at *rbp.
  const CfiBytes drap =
      cfa_expression({DW_OP_breg6, 0x78, DW_OP_deref}).append({DW_CFA_expression, 6, 2, DW_OP_breg6, 0});
  EXPECT_EQ(only_rule(drap), rule(DDPROF_CFA_DEREF_FP, halves(-8, 0), DDPROF_FP_AT_FP, 0));
  // OpenSSL's: CFA = *(rsp + 152) + 8.
  const CfiBytes openssl =
      cfa_expression(CfiBytes{DW_OP_breg7}.sleb(152).append({DW_OP_deref, DW_OP_plus_uconst, 8}));
  EXPECT_EQ(only_rule(openssl), rule(DDPROF_CFA_DEREF_SP, halves(152, 8)));
  EXPECT_EQ(only_rule(cfa_expression({DW_OP_breg7, 16, DW_OP_deref, DW_OP_lit8, DW_OP_minus})),
            rule(DDPROF_CFA_DEREF_SP, halves(16, -8)));
}

TEST(Compile, KnowsNoExpressionThatNeedsMoreThanOneConstant) {
  for (const CfiBytes& expression :
       {CfiBytes{DW_OP_breg7, 16, DW_OP_deref, DW_OP_lit8},                       // a constant is left
        CfiBytes{DW_OP_breg7, 16, DW_OP_lit8, DW_OP_deref},                       // of the constant
        CfiBytes{DW_OP_breg7, 16, DW_OP_deref, DW_OP_deref},                      // twice
        CfiBytes{DW_OP_breg7, 16, DW_OP_lit8, DW_OP_lit8, DW_OP_plus},            // two
        CfiBytes{DW_OP_breg7, 16, DW_OP_lit8, DW_OP_plus_uconst, 8, DW_OP_plus},  // to the constant
        CfiBytes{DW_OP_breg7, 16, DW_OP_plus},                                    // without one
        CfiBytes{DW_OP_lit8}, CfiBytes{DW_OP_breg7, 16, DW_OP_deref, DW_OP_lit8, DW_OP_mul}})
    EXPECT_EQ(only_rule(cfa_expression(expression)), kUnsupported);
}

TEST(Compile, TurnsASlotGivenByExpressionIntoItsDistanceFromTheCfa) {
  const CfiBytes instructions =
      CfiBytes{DW_CFA_def_cfa_offset, 64, DW_CFA_expression, 6}.block({DW_OP_breg7, 16});
  EXPECT_EQ(only_rule(instructions), rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, -48));
}

TEST(Compile, RecognisesThePltHoweverItsConstantsAreWritten) {
  const CfiBytes usual{DW_OP_breg7, 8,        DW_OP_breg16, 0,         DW_OP_lit15, DW_OP_and,
                       DW_OP_lit11, DW_OP_ge, DW_OP_lit3,   DW_OP_shl, DW_OP_plus};
  EXPECT_EQ(only_rule(cfa_expression(usual)), rule(DDPROF_CFA_PLT, 11));
  const CfiBytes other{DW_OP_breg7,   8, DW_OP_breg16, 0,          DW_OP_const1u, 15,        DW_OP_and,
                       DW_OP_const1u, 6, DW_OP_ge,     DW_OP_lit3, DW_OP_shl,     DW_OP_plus};
  EXPECT_EQ(only_rule(cfa_expression(other)), rule(DDPROF_CFA_PLT, 6));
  const CfiBytes shift_by_4{DW_OP_breg7, 8,        DW_OP_breg16, 0,         DW_OP_lit15, DW_OP_and,
                            DW_OP_lit11, DW_OP_ge, DW_OP_lit4,   DW_OP_shl, DW_OP_plus};
  EXPECT_EQ(only_rule(cfa_expression(shift_by_4)), kUnsupported);
}

TEST(Compile, KnowsSignalFramesByTheirAugmentation) {
  EXPECT_EQ(only_rule({}, {.augmentation = "zRS"}), rule(DDPROF_CFA_SIGNAL_FRAME, 0));
}

TEST(Compile, SkipsPersonalityAndLanguageData) {
  EXPECT_EQ(only_rule({}, {.augmentation = "zPLR", .augmentation_data = {0x9b, 1, 2, 3, 4, 0x1b, 0x00}}),
            kEntry);
}

TEST(Compile, ReadsEveryVersionOfACie) {
  for (const unsigned version : {1U, 3U, 4U})
    EXPECT_EQ(only_rule({}, {.version = version}), kEntry) << version;
  EXPECT_EQ(one_function({}, {.version = 2}).table.counters().bad_entries, 2U);  // the CIE and its FDE
}

TEST(Compile, DecodesEveryPointerEncoding) {
  struct Case {
    unsigned encoding;
    CfiBytes pointers;
  };
  EhFrame probe;
  probe.add_cie({});
  const std::uint64_t here = TestElf::kEhFrameAddress + probe.next_pointer_offset();
  const auto relative = static_cast<std::uint32_t>(kBegin - here);
  const std::vector<Case> cases = {
      {0x00, CfiBytes().u64(kBegin).u64(kSize)},
      {0x01, CfiBytes().uleb(kBegin).uleb(kSize)},
      {0x02, CfiBytes().u16(kBegin).u16(kSize)},
      {0x03, CfiBytes().u32(kBegin).u32(kSize)},
      {0x04, CfiBytes().u64(kBegin).u64(kSize)},
      {0x09, CfiBytes().sleb(kBegin).sleb(kSize)},
      {0x0a, CfiBytes().u16(kBegin).u16(kSize)},
      {0x0b, CfiBytes().u32(kBegin).u32(kSize)},
      {0x0c, CfiBytes().u64(kBegin).u64(kSize)},
      {0x1b, CfiBytes().u32(relative).u32(kSize)},
      {0x1c, CfiBytes().u64(kBegin - here).u64(kSize)},
      {0x2b, CfiBytes().u32(kBegin).u32(kSize)},  // text- and data-relative, to bases that are 0 here
      {0x3b, CfiBytes().u32(kBegin).u32(kSize)},
  };
  for (const Case& test : cases) {
    EhFrame frames;
    const std::size_t cie = frames.add_cie({.augmentation_data = {test.encoding}});
    frames.add_fde_with_pointers(cie, test.pointers, {});
    const Compiled compiled(frames);
    EXPECT_EQ(compiled.at(kBegin), kEntry) << "encoding " << test.encoding;
    EXPECT_EQ(compiled.table.end(), kBegin + kSize) << "encoding " << test.encoding;
  }
}

TEST(Compile, RefusesIndirectPointers) {
  EhFrame frames;
  frames.add_fde_with_pointers(frames.add_cie({.augmentation_data = {0x9b}}),
                               CfiBytes().u32(kBegin).u32(kSize), {});
  EXPECT_TRUE(Compiled(frames).table.empty());
  EXPECT_EQ(Compiled(frames).table.counters().bad_entries, 1U);
}

// A .debug_frame of one function; its entry rule has a CFA of rsp + `cfa_offset`.
CfiBytes debug_frame(std::uint64_t begin, std::uint64_t size, unsigned cfa_offset, bool is_64_bit) {
  const auto record = [is_64_bit](CfiBytes& out, std::uint64_t id, const CfiBytes& rest) {
    if (is_64_bit) {
      out.u32(0xffffffff).u64(rest.size() + 8).u64(id).append(rest);
    } else {
      out.u32(static_cast<std::uint32_t>(rest.size() + 4)).u32(static_cast<std::uint32_t>(id)).append(rest);
    }
  };
  CfiBytes data;
  record(data, ~std::uint64_t{0},
         CfiBytes().u8(4).text("").u8(8).u8(0).uleb(1).sleb(-8).uleb(16).append(
             {DW_CFA_def_cfa, 7, cfa_offset, DW_CFA_offset | 16, 1}));
  record(data, 0, CfiBytes().u64(begin).u64(size));
  return data;
}

TEST(Compile, ReadsDebugFrameIn32And64BitForm) {
  for (const bool is_64_bit : {false, true}) {
    const Compiled compiled(TestElf({}, debug_frame(kBegin, kSize, 24, is_64_bit)));
    EXPECT_EQ(compiled.at(kBegin), rule(DDPROF_CFA_SP, 24)) << is_64_bit;
    EXPECT_EQ(compiled.at(kBegin + kSize), kGap) << is_64_bit;
  }
}

TEST(Compile, LetsDebugFrameFillWhatEhFrameLeavesOut) {
  EhFrame frames;
  frames.add_fde(frames.add_cie({}), kBegin, kSize, {});
  CfiBytes debug = debug_frame(kBegin, kSize, 24, false);  // covered: not used
  const Compiled covered(TestElf(frames.data(), debug));
  EXPECT_EQ(covered.at(kBegin), kEntry);
  const Compiled before(TestElf(frames.data(), debug_frame(kBegin - 0x20, 0x40, 24, false)));
  EXPECT_EQ(before.at(kBegin - 1), rule(DDPROF_CFA_SP, 24));
  EXPECT_EQ(before.at(kBegin), kEntry);
  const Compiled after(TestElf(frames.data(), debug_frame(kBegin + kSize, 0x10, 24, false)));
  EXPECT_EQ(after.at(kBegin + kSize), rule(DDPROF_CFA_SP, 24));
  EXPECT_EQ(after.at(kBegin + kSize + 0x10), kGap);
}

TEST(Compile, FollowsAnAarch64Frame) {
  // stp x29, x30, [sp, #-32]!; mov x29, sp; ...; ldp; ret, with a signed return address
  const Compiled compiled = one_function(
      {DW_CFA_AARCH64_negate_ra_state, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 32, DW_CFA_offset | 29,
       4, DW_CFA_offset | 30, 3, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 29, DW_CFA_advance_loc | 2,
       DW_CFA_def_cfa, 31, 0, DW_CFA_restore | 29, DW_CFA_restore | 30},
      aarch64_cie(), EM_AARCH64);
  EXPECT_EQ(compiled.at(kBegin), rule(DDPROF_CFA_SP, 0, DDPROF_FP_SAME, 0, DDPROF_RA_IN_LINK_REGISTER));
  EXPECT_EQ(compiled.at(kBegin + 4), rule(DDPROF_CFA_SP, 32, DDPROF_FP_AT_CFA, -32, DDPROF_RA_AFTER_FP));
  EXPECT_EQ(compiled.at(kBegin + 8), rule(DDPROF_CFA_FP, 32, DDPROF_FP_AT_CFA, -32, DDPROF_RA_AFTER_FP));
  EXPECT_EQ(compiled.at(kBegin + 16), rule(DDPROF_CFA_SP, 0, DDPROF_FP_SAME, 0, DDPROF_RA_IN_LINK_REGISTER));
}

TEST(Compile, FollowsAnAarch64FunctionThatSavesTheLinkRegisterAlone) {
  EXPECT_EQ(only_rule({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 30, 2}, aarch64_cie(), EM_AARCH64),
            rule(DDPROF_CFA_SP, 16, DDPROF_FP_SAME, -16, DDPROF_RA_AT_FP_OFFSET));
  EXPECT_EQ(only_rule({DW_CFA_def_cfa_offset, 64, DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 1},
                      aarch64_cie(), EM_AARCH64),
            rule(DDPROF_CFA_SP, 64, DDPROF_FP_AT_CFA, -32, DDPROF_RA_AT_CFA_MINUS_8));
  EXPECT_EQ(only_rule({DW_CFA_def_cfa_offset, 64, DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 7},
                      aarch64_cie(), EM_AARCH64),
            kUnsupported);
}

TEST(Compile, EndsAndSignalsOnAarch64Too) {
  EXPECT_EQ(only_rule({DW_CFA_undefined, 30}, aarch64_cie(), EM_AARCH64), kEnd);
  auto options = aarch64_cie();
  options.augmentation = "zRS";
  EXPECT_EQ(only_rule({}, options, EM_AARCH64), rule(DDPROF_CFA_SIGNAL_FRAME, 0));
  options.augmentation = "zRB";
  EXPECT_EQ(only_rule({}, options, EM_AARCH64),
            rule(DDPROF_CFA_SP, 0, DDPROF_FP_SAME, 0, DDPROF_RA_IN_LINK_REGISTER));
  EXPECT_EQ(only_rule({DW_CFA_AARCH64_negate_ra_state}), kGap) << "not an instruction of x86-64";
}

TEST(Compile, MakesTheRestOfAFunctionAGapWhenAnInstructionIsBad) {
  const Compiled compiled =
      one_function({DW_CFA_advance_loc | 8, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 8, 0x3e});
  EXPECT_EQ(compiled.at(kBegin), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 8), rule(DDPROF_CFA_SP, 16));
  EXPECT_EQ(compiled.at(kBegin + 16), kGap);
  EXPECT_EQ(compiled.at(kBegin + kSize - 1), kGap);
  EXPECT_EQ(compiled.table.counters().bad_entries, 1U);
}

TEST(Compile, SurvivesARememberStateBombAndAnUnpairedRestore) {
  CfiBytes bomb;
  for (int i = 0; i < 100000; ++i) bomb.u8(DW_CFA_remember_state);
  EXPECT_EQ(one_function(bomb).table.counters().bad_entries, 1U);
  EXPECT_EQ(one_function({DW_CFA_restore_state}).table.counters().bad_entries, 1U);
}

// Absolute pointers of 4 bytes, and those relative to their own address, which wrap.
TEST(Compile, ReadsTheCfiOfI386) {
  EhFrame frames;
  const CfiBytes pushes = {DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 8, DW_CFA_offset | 5, 2};
  frames.add_fde_with_pointers(frames.add_cie(i386_cie()), CfiBytes().u32(kBegin).u32(kSize), pushes);
  auto relative = i386_cie();
  relative.augmentation_data = {0x1b};  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
  const std::size_t cie = frames.add_cie(relative);
  const std::uint64_t here = TestElf::kEhFrameAddress + frames.next_pointer_offset();
  frames.add_fde_with_pointers(
      cie, CfiBytes().u32(static_cast<std::uint32_t>(kBegin + kSize - here)).u32(kSize), pushes);
  const Compiled compiled(frames, EM_386);
  for (const std::uint64_t begin : {kBegin, kBegin + kSize}) {
    EXPECT_EQ(compiled.at(begin), rule(DDPROF_CFA_SP, 4));
    EXPECT_EQ(compiled.at(begin + 1), rule(DDPROF_CFA_SP, 8, DDPROF_FP_AT_CFA, -8));
  }
  EXPECT_EQ(compiled.at(kBegin + 2 * kSize), kGap);
  EXPECT_EQ(compiled.table.counters().bad_entries, 0U);
}

TEST(Compile, ClipsFunctionsThatOverlapOrLeaveTheCode) {
  EhFrame frames;
  const std::size_t cie = frames.add_cie({});
  frames.add_fde(cie, kBegin + 0x10, 0x10, {DW_CFA_def_cfa_offset, 32});
  frames.add_fde(cie, kBegin, ~std::uint64_t{0} - kBegin, {});
  frames.add_fde(cie, 0x10, 0x10, {});  // before the executable segment
  const Compiled compiled(frames);
  EXPECT_EQ(compiled.at(kBegin + 0xf), kEntry);
  EXPECT_EQ(compiled.at(kBegin + 0x10), rule(DDPROF_CFA_SP, 32));
  EXPECT_EQ(compiled.at(kBegin + 0x20), kGap);
  EXPECT_EQ(compiled.at(0x10), kGap);
  EXPECT_EQ(compiled.table.counters().stray_entries, 2U);
}

TEST(Compile, StopsAnAdvanceAtTheEndOfItsFunction) {
  const Compiled compiled = one_function(
      CfiBytes{DW_CFA_MIPS_advance_loc8}.u64(~std::uint64_t{0}).append({DW_CFA_def_cfa_offset, 16}));
  EXPECT_EQ(compiled.at(kBegin + kSize - 1), kEntry);
  EXPECT_EQ(compiled.table.end(), kBegin + kSize);
}

TEST(Compile, GoesOnAfterATerminatorInTheMiddle) {
  EhFrame frames;
  const std::size_t cie = frames.add_cie({});
  frames.data().u32(0);
  frames.add_fde(cie, kBegin, kSize, {});
  EXPECT_EQ(Compiled(frames).at(kBegin), kEntry);
}

TEST(Compile, CountsARecordThatLeavesItsSection) {
  EhFrame frames;
  frames.add_fde(frames.add_cie({}), kBegin, kSize, {});
  frames.data().u32(0x1000).u32(0);
  const Compiled compiled(frames);
  EXPECT_EQ(compiled.at(kBegin), kEntry);
  EXPECT_EQ(compiled.table.counters().bad_entries, 1U);
}

// Every row of files of this machine: the C library, this program, and a large library where there is one.
class CompileWindows : public testing::TestWithParam<const char*> {};

TEST_P(CompileWindows, HaveTheRulesOfTheWholeTable) {
  const UniqueFd fd(::open(GetParam(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) GTEST_SKIP() << GetParam() << " is not installed";
  const MappedRegion image = MappedRegion::map_file(fd.get()).value();
  const ElfFile file = ElfFile::parse(image.bytes()).value();
  RuleDictionary dictionary, window_dictionary;
  const UnwindTable whole = compile_unwind_table(file, dictionary);
  const auto windows = WindowCompiler::of(file, 0);
  ASSERT_TRUE(windows);
  std::size_t checked = 0;
  for (std::size_t number = 0; number < windows->size(); ++number) {
    const UnwindTable window = windows->compile(number, window_dictionary);
    for (std::size_t page = 0; page + 1 < whole.pages().size(); ++page) {
      for (std::size_t row = whole.pages()[page]; row < whole.pages()[page + 1]; ++row) {
        const std::uint64_t address = whole.base() + (page << whole.page_shift()) + whole.rows()[row].pc_low;
        for (const std::uint64_t at : {address - 1, address, address + 1}) {
          if (windows->window_of(at) != number) continue;
          ASSERT_EQ(window_dictionary[window.find(at)], dictionary[whole.find(at)]) << std::hex << at;
          ++checked;
        }
      }
      const std::uint64_t next = whole.base() + ((page + 1) << whole.page_shift());
      if (windows->window_of(next) > number) break;
    }
  }
  EXPECT_GE(checked, whole.row_count());
  EXPECT_FALSE(windows->window_of(whole.end() + (std::uint64_t{1} << 40U)));
}

INSTANTIATE_TEST_SUITE_P(FilesOfThisMachine, CompileWindows,
                         testing::Values("/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"));

TEST(CompileBySortedTable, IsForLargeFilesAlone) {
  EhFrame frames;
  frames.add_fde(frames.add_cie({}), kBegin, kSize, {});
  const TestElf elf(frames.data(), CfiBytes(), EM_X86_64, 0x1000, 0x10000);
  EXPECT_FALSE(WindowCompiler::of(*ElfFile::parse(elf.bytes()))) << "small";
  EXPECT_FALSE(WindowCompiler::of(*ElfFile::parse(elf.bytes()), 0)) << "no sorted table";
}

TEST(CompileLimits, DoNotReadASectionThatMemoryDoesNotHold) {
  CfiBytes frames;
  for (int i = 0; i < 100000; ++i) frames.u8(0);
  const TestElf elf(frames, CfiBytes(), EM_X86_64, 0x1000, 0x1000);
  RuleDictionary dictionary;
  const auto unread_with = [&](std::uint64_t max_memory) {
    const UnwindTable table = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary, {max_memory});
    EXPECT_TRUE(table.empty());
    return table.counters().unread;
  };
  EXPECT_EQ(unread_with(4 * 100000 - 4), 1U);
  EXPECT_EQ(unread_with(4 * 100000), 0U) << "a quarter of it is just enough";
}

}  // namespace
}  // namespace ddprof
