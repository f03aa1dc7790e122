#include "unwind/code_walk.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace ddprof {
namespace {

using Outcome = CodeRow::Outcome;

constexpr std::uint64_t kSnippetStart = 0x1000;

struct Piece {
  Piece(std::initializer_list<unsigned> values) {  // NOLINT: reads as code
    for (const unsigned byte : values) bytes.push_back(static_cast<std::byte>(byte));
  }
  explicit Piece(std::vector<std::byte> code) : bytes(std::move(code)) {}
  std::vector<std::byte> bytes;
};

// Instructions, one after the other from kSnippetStart on, and the row at the one with this index.
class Snippet {
 public:
  Snippet(std::initializer_list<Piece> pieces) {  // NOLINT: reads as code
    for (const Piece& piece : pieces) {
      starts_.push_back(bytes_.size());
      bytes_.insert(bytes_.end(), piece.bytes.begin(), piece.bytes.end());
    }
  }
  [[nodiscard]] CodeRow row(std::size_t index, const NoReturnFunctions* no_return = nullptr) const {
    CodeWalk walk;
    walk.start({kSnippetStart, bytes_}, no_return);
    return walk.find(kSnippetStart + starts_[index]);
  }
  [[nodiscard]] RegisterPlace place(std::size_t index, unsigned dwarf_number) const {
    CodeWalk walk;
    walk.start({kSnippetStart, bytes_});
    EXPECT_EQ(walk.find(kSnippetStart + starts_[index]).outcome, CodeRow::Outcome::rule);
    return walk.place_of(dwarf_number);
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> starts_;
};

void expect_code_rule(const CodeRow& row, unsigned cfa, std::int32_t cfa_offset, unsigned fp = DDPROF_FP_SAME,
                      int fp_offset = 0) {
  EXPECT_EQ(row.outcome, Outcome::rule);
  EXPECT_EQ(row.rule.cfa, cfa);
  EXPECT_EQ(row.rule.cfa_offset, cfa_offset);
  EXPECT_EQ(row.rule.fp_ra, fp);
  EXPECT_EQ(row.rule.fp_offset, fp_offset);
}

const Piece kReturn{0xc3};
const Piece kPushRbp{0x55};
const Piece kPopRbp{0x5d};
const Piece kPushRbx{0x53};
const Piece kPopRbx{0x5b};
const Piece kNothing{0x90};
const Piece kHlt{0xf4};
const Piece kUd2{0x0f, 0x0b};
const Piece kLeave{0xc9};
const Piece kMovRspRbp{0x48, 0x89, 0xe5};
const Piece kSubRsp24{0x48, 0x83, 0xec, 0x18};
const Piece kAddRsp24{0x48, 0x83, 0xc4, 0x18};
const Piece kJumpToRax{0xff, 0xe0};

TEST(CodeWalk, CountsWhatIsStillToBeRemoved) {
  const Snippet code{kPushRbp, kPushRbx, kSubRsp24, kNothing, kAddRsp24, kPopRbx, kPopRbp, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(2), DDPROF_CFA_SP, 24, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(3), DDPROF_CFA_SP, 48, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(5), DDPROF_CFA_SP, 24, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(6), DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(7), DDPROF_CFA_SP, 8);
}

TEST(CodeWalk, UsesTheFramePointerWhereTheCodeDoes) {
  const Snippet code{kPushRbp, kMovRspRbp, {0x48, 0x29, 0xc4} /* sub %rax,%rsp */, kNothing, kLeave, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 16, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(2), DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(3), DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(5), DDPROF_CFA_SP, 8);
}

TEST(CodeWalk, FollowsEnter) {
  const Snippet code{{0xc8, 0x20, 0, 0}, kNothing, kLeave, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(1), DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16);
}

// As gcc realigns the stack: the caller's stack pointer lives in r10, and is saved.
TEST(CodeWalk, FollowsARealignedStack) {
  const Snippet code{{0x4c, 0x8d, 0x54, 0x24, 0x08},  // lea 8(%rsp),%r10
                     {0x48, 0x83, 0xe4, 0xe0},        // and $-32,%rsp
                     {0x41, 0xff, 0x72, 0xf8},        // push -8(%r10)
                     kPushRbp,
                     kMovRspRbp,
                     {0x41, 0x52},              // push %r10
                     {0x48, 0x83, 0xec, 0x28},  // sub $0x28,%rsp
                     {0x48, 0x8d, 0x65, 0xf8},  // lea -8(%rbp),%rsp
                     {0x41, 0x5a},              // pop %r10
                     kPopRbp,
                     {0x49, 0x8d, 0x62, 0xf8},  // lea -8(%r10),%rsp
                     kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(1), DDPROF_CFA_REGISTER + 10, 0);
  expect_code_rule(code.row(2), DDPROF_CFA_REGISTER + 10, 0);
  expect_code_rule(code.row(6), DDPROF_CFA_DEREF_FP, 0xfff8, DDPROF_FP_AT_FP, 0);
  expect_code_rule(code.row(7), DDPROF_CFA_DEREF_FP, 0xfff8, DDPROF_FP_AT_FP, 0);
  // Only a rule cannot say that rbp is at a distance from rsp if the CFA is not.
  EXPECT_EQ(code.row(8).outcome, Outcome::not_expressible);
  expect_code_rule(code.row(10), DDPROF_CFA_REGISTER + 10, 0);
}

TEST(CodeWalk, FollowsAStackPointerThatWasSavedInMemory) {
  const Snippet code{kNothing,
                     {0x48, 0x8b, 0x84, 0x24, 0x10, 1, 0, 0},  // mov 0x110(%rsp),%rax
                     {0x48, 0x8b, 0x68, 0xf0},                 // mov -0x10(%rax),%rbp
                     {0x48, 0x8d, 0x20},                       // lea (%rax),%rsp
                     kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_DEREF_SP, 0x110 | 8 << 16, DDPROF_FP_AT_CFA, -24);
  expect_code_rule(code.row(2), DDPROF_CFA_REGISTER + 0, 8, DDPROF_FP_AT_CFA, -24);
  expect_code_rule(code.row(3), DDPROF_CFA_REGISTER + 0, 8);
}

TEST(CodeWalk, FollowsWordsThatAreMovedInsteadOfPushed) {
  const Snippet code{{0x48, 0x83, 0xec, 0x28},
                     {0x48, 0x89, 0x6c, 0x24, 0x20},  // mov %rbp,0x20(%rsp)
                     kNothing,
                     {0x48, 0x8b, 0x6c, 0x24, 0x20},
                     {0x48, 0x83, 0xc4, 0x28},
                     kReturn};
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 0x30);
  expect_code_rule(code.row(2), DDPROF_CFA_SP, 0x30, DDPROF_FP_AT_CFA, -16);
  expect_code_rule(code.row(4), DDPROF_CFA_SP, 0x30);
}

TEST(CodeWalk, FollowsAnExchangedStackPointer) {
  const Snippet code{{0x48, 0x94} /* xchg %rsp,%rax */, kNothing, {0x48, 0x94}, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(1), DDPROF_CFA_REGISTER + 0, 8);
}

TEST(CodeWalk, TakesBothWaysOfABranch) {
  // je over the first epilogue; both remove the same
  const Snippet code{kSubRsp24, {0x74, 0x05}, kAddRsp24, kReturn, kAddRsp24, kReturn};
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 32);
  const Snippet other{kSubRsp24, {0x74, 0x05}, kAddRsp24, kReturn, {0x48, 0x83, 0xc4, 0x28}, kReturn};
  EXPECT_EQ(other.row(1).outcome, Outcome::contradiction);
}

TEST(CodeWalk, LeavesLoops) {
  const Snippet code{kPushRbx, kNothing, {0x75, 0xfd}, kPopRbx, kReturn};
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 16);
  const Snippet endless{kPushRbx, kNothing, {0xeb, 0xfd}};
  EXPECT_EQ(endless.row(1).outcome, Outcome::never_returns);
}

// sub $0x1000,%rsp; cmp %r11,%rsp; jne: a page at a time, until rsp is r11.
TEST(CodeWalk, KnowsTheStackPointerAfterALoopThatTouchesPages) {
  const Snippet code{{0x48, 0x81, 0xec, 0, 0x10, 0, 0},
                     {0x4c, 0x39, 0xdc},
                     {0x75, 0xf4},
                     {0x48, 0x81, 0xc4, 0, 0, 2, 0},
                     kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_REGISTER + 11, 0x20008);
  expect_code_rule(code.row(3), DDPROF_CFA_SP, 0x20008);
}

TEST(CodeWalk, EndsAtTraps) {
  EXPECT_EQ((Snippet{kPushRbx, kUd2}).row(0).outcome, Outcome::never_returns);
  EXPECT_EQ((Snippet{kPushRbx, kHlt}).row(0).outcome, Outcome::never_returns);
  const Snippet code{kPushRbx, {0x74, 0x02}, kUd2, kPopRbx, kReturn};
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 16);
}

TEST(CodeWalk, IsNoRootWhereAPathIsUnknown) {
  EXPECT_EQ((Snippet{kNothing, kJumpToRax}).row(0).outcome, Outcome::unknown_jump);
  EXPECT_EQ((Snippet{{0x74, 0x02}, kUd2, kJumpToRax}).row(0).outcome, Outcome::unknown_jump);
  EXPECT_EQ((Snippet{kNothing, {0x06}}).row(0).outcome, Outcome::unknown_jump);  // not an instruction
  EXPECT_EQ((Snippet{kNothing}).row(0).outcome, Outcome::unknown_jump);          // the bytes end
  // Another way leads to a return.
  const Snippet code{kPushRbx, {0x74, 0x02}, kJumpToRax, kPopRbx, kReturn};
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 16);
}

TEST(CodeWalk, StopsWhenItTakesTooLong) {
  std::vector<std::byte> bytes(CodeWalk::kMaxInstructions + 10, std::byte{0x90});
  bytes.push_back(std::byte{0xc3});
  CodeWalk walk;
  walk.start({kSnippetStart, bytes});
  EXPECT_EQ(walk.find(kSnippetStart).outcome, Outcome::too_long);
  EXPECT_EQ(walk.find(kSnippetStart).instructions, CodeWalk::kMaxInstructions);
  expect_code_rule(walk.find(kSnippetStart + 20), DDPROF_CFA_SP, 8);
}

// push %rbx; jle behind a body that is longer than a walk; pop %rbx; ret
TEST(CodeWalk, SkipsWhatIsTooLong) {
  const std::uint32_t length = CodeWalk::kMaxInstructions + 10;
  std::vector<std::byte> bytes = {std::byte{0x53}, std::byte{0x0f}, std::byte{0x8e}};
  for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(length >> shift));
  bytes.resize(bytes.size() + length, std::byte{0x90});
  bytes.insert(bytes.end(), {std::byte{0x5b}, std::byte{0xc3}});
  CodeWalk walk;
  walk.start({kSnippetStart, bytes});
  const CodeRow row = walk.find(kSnippetStart + 1);
  expect_code_rule(row, DDPROF_CFA_SP, 16);
  EXPECT_LT(row.instructions, CodeWalk::kMaxInstructions + 300);
}

TEST(CodeWalk, GoesThroughTailCalls) {
  // pop %rbx; jmp to a function that returns
  expect_code_rule((Snippet{kPushRbx, kPopRbx, {0xeb, 0x02}, kUd2, kPushRbp, kPopRbp, kReturn}).row(1),
                   DDPROF_CFA_SP, 16);
  expect_code_rule((Snippet{kPopRbx, {0xff, 0x25, 0, 0, 0, 0}}).row(0), DDPROF_CFA_SP,
                   16);                                                        // jmp *slot(%rip)
  expect_code_rule((Snippet{kPopRbx, kJumpToRax}).row(0), DDPROF_CFA_SP, 16);  // the frame is gone
  EXPECT_EQ((Snippet{kPopRbx, kPushRbx, kJumpToRax}).row(0).outcome, Outcome::unknown_jump);
  EXPECT_EQ((Snippet{kAddRsp24, kJumpToRax}).row(0).outcome, Outcome::unknown_jump);  // may be arguments
  EXPECT_EQ((Snippet{kPopRbx, {0xff, 0x24, 0xc5, 0, 0, 0, 0}}).row(0).outcome, Outcome::unknown_jump);
}

TEST(CodeWalk, KnowsTheStubsOfLazyBinding) {
  const Snippet code{{0xff, 0x35, 0, 0, 0, 0},
                     {0xff, 0x25, 0, 0, 0, 0},  // the first stub
                     kNothing,
                     {0xff, 0x25, 0, 0, 0, 0},
                     {0x68, 0, 0, 0, 0},
                     {0xe9, 0xe3, 0xff, 0xff, 0xff}};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 16);
  expect_code_rule(code.row(1), DDPROF_CFA_SP, 24);
  expect_code_rule(code.row(3), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(4), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(5), DDPROF_CFA_SP, 16);
}

TEST(CodeWalk, CallsKeepWhatTheyMust) {
  // rbx and the slots of the frame survive; rax does not
  const Snippet code{{0x48, 0x89, 0xe3} /* mov %rsp,%rbx */, {0xff, 0xd0}, {0x48, 0x89, 0xdc}, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(2), DDPROF_CFA_REGISTER + 3, 8);
  const Snippet lost{{0x48, 0x89, 0xe0}, {0xff, 0xd0}, {0x48, 0x89, 0xc4}, kReturn};
  EXPECT_EQ(lost.row(0).outcome, Outcome::unknown_jump);
}

// As in libx264: functions that only their own file calls leave rcx alone.
TEST(CodeWalk, FollowsAStackPointerThatAssemblyKeepsOverItsCalls) {
  const Snippet code{{0x48, 0x89, 0xe1},        // mov %rsp,%rcx
                     {0x48, 0x83, 0xe4, 0xe0},  // and $-32,%rsp
                     {0xe8, 0x04, 0, 0, 0},     // call behind the return
                     {0x48, 0x89, 0xcc},        // mov %rcx,%rsp
                     kReturn,
                     kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(2), DDPROF_CFA_REGISTER + 2, 8);
  EXPECT_EQ(code.place(5, 2).where, RegisterPlace::Where::unchanged);
}

TEST(CodeWalk, EndsAtCallsThatDoNotReturn) {
  // call a function that ends in hlt; what lies behind is another function, which removes another frame
  const Snippet code{kSubRsp24, {0xe8, 0x05, 0, 0, 0}, {0x48, 0x83, 0xc4, 0x48}, kReturn, {0xf4}};
  EXPECT_EQ(code.row(0).outcome, Outcome::never_returns);
  // and by name
  NoReturnFunctions named;
  const Snippet import{{0xe8, 0x01, 0, 0, 0}, kReturn, {0xff, 0x25, 0xf4, 0x0f, 0, 0}};
  EXPECT_EQ(import.row(0, &named).outcome, Outcome::rule);
  named.addresses = {0x2000};
  EXPECT_EQ(import.row(0, &named).outcome, Outcome::never_returns);
  NoReturnFunctions own;
  own.own_imports = {{0x2000, kSnippetStart + 12}};
  const Snippet exported{{0xe8, 0x01, 0, 0, 0}, kReturn, {0xff, 0x25, 0xf4, 0x0f, 0, 0}, kHlt};
  EXPECT_EQ(exported.row(0, &own).outcome, Outcome::never_returns);
}

TEST(CodeWalk, DoesNotRunIntoTheNextFunction) {
  // call *%rax at the end of a function; then padding, and the next one at a multiple of 16
  const Snippet code{kSubRsp24, {0xff, 0xd0}, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
                     kPushRbx,  kPopRbx,      kReturn};
  EXPECT_EQ(code.row(1).outcome, Outcome::unknown_jump);
  expect_code_rule(code.row(3), DDPROF_CFA_SP, 8);
}

// Behind a call that does not return lies another function's end, which does not fit: it is not believed if
// another way gives all registers back.
TEST(CodeWalk, BelievesTheReturnThatGivesRegistersBack) {
  const Snippet code{{0x74, 0x02} /* je */,
                     kPopRbx,
                     kReturn,  // pops into rbx: fits
                     {0xbb, 0, 0, 0, 0} /* mov $0,%ebx */,
                     kPopRbp,
                     kReturn};  // loses rbx
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 16);
}

// Whose value a caller gets back.
TEST(CodeWalk, TellsWhereARegisterIsSaved) {
  using Where = RegisterPlace::Where;
  constexpr unsigned kRbx = 3;
  constexpr unsigned kR12 = 12;
  const auto expect_place = [](const Snippet& code, std::size_t index, unsigned number, Where where,
                               int offset) {
    SCOPED_TRACE(index);
    const RegisterPlace place = code.place(index, number);
    EXPECT_EQ(place.where, where);
    EXPECT_EQ(place.offset, offset);
  };
  const Snippet pushes{kPushRbx, kSubRsp24, kNothing, {0x48, 0x83, 0xc4, 0x18}, kPopRbx, kReturn};
  expect_place(pushes, 0, kRbx, Where::unchanged, 0);
  expect_place(pushes, 1, kRbx, Where::at_sp, 0);
  expect_place(pushes, 2, kRbx, Where::at_sp, 24);
  expect_place(pushes, 5, kRbx, Where::unchanged, 0);
  expect_place(pushes, 2, kR12, Where::unchanged, 0);
  const Snippet by_rbp{{0x4c, 0x8b, 0x65, 0xf0} /* mov -16(%rbp),%r12 */, kLeave, kReturn};
  expect_place(by_rbp, 0, kR12, Where::at_fp, -16);
  const Snippet lost{{0xbb, 0, 0, 0, 0} /* mov $0,%ebx */, kReturn};
  expect_place(lost, 0, kRbx, Where::unknown, 0);
  expect_place(pushes, 2, 16, Where::unknown, 0);  // no general register
  // one way gives it back, the other does not
  const Snippet branches{{0x74, 0x01} /* je */, kReturn, {0x31, 0xc0} /* xor %eax,%eax */, kReturn};
  expect_place(branches, 0, 0, Where::unknown, 0);
  expect_place(branches, 0, kRbx, Where::unchanged, 0);
}

TEST(CodeWalk, RefusesReturnsToBelowTheStackPointer) {
  const Snippet code{kPushRbx, kReturn};
  EXPECT_EQ(code.row(0).outcome, Outcome::unknown_jump);
}

TEST(CodeWalk, RefusesWhatARuleCannotSay) {
  // rbp is saved in the red zone, where a rule takes it for popped
  const Snippet code{kNothing, {0x48, 0x8b, 0x6c, 0x24, 0xf8}, kReturn};
  EXPECT_EQ(code.row(0).outcome, Outcome::not_expressible);
}

// What a rule gives no sign of: whether a path gave all registers back. The second path, at a distance of
// `skipped` bytes, loses rbx and removes another frame. It is believed as much as a first one that lost one.
const Piece kLoseRbx{0xbb, 0, 0, 0, 0};
Piece branch_over(unsigned skipped) { return {0x74, skipped}; }

TEST(CodeWalk, TellsNeighbouringWordsApart) {
  const Snippet pushed{kPushRbx, kPushRbp,  branch_over(3), kPopRbp,  kPopRbx,
                       kReturn,  kAddRsp24, kAddRsp24,      kLoseRbx, kReturn};
  expect_code_rule(pushed.row(0), DDPROF_CFA_SP, 8);
  const Snippet moved{{0x48, 0x89, 0x6c, 0x24, 0xf0},  // mov %rbp,-16(%rsp)
                      {0x48, 0x89, 0x5c, 0x24, 0xf8},  // mov %rbx,-8(%rsp)
                      branch_over(11),
                      {0x48, 0x8b, 0x5c, 0x24, 0xf8},
                      {0x48, 0x8b, 0x6c, 0x24, 0xf0},
                      kReturn,
                      kAddRsp24,
                      kLoseRbx,
                      kReturn};
  expect_code_rule(moved.row(0), DDPROF_CFA_SP, 8);
  const Snippet shifted{{0x48, 0x89, 0x5c, 0x24, 0xf0},  // mov %rbx,-16(%rsp)
                        branch_over(6),
                        {0x48, 0x8b, 0x5c, 0x24, 0xf4},  // mov -12(%rsp),%rbx: half of it
                        kReturn,
                        kAddRsp24,
                        kLoseRbx,
                        kReturn};
  EXPECT_EQ(shifted.row(0).outcome, Outcome::contradiction);
}

TEST(CodeWalk, ForgetsWordsThatAreOverwritten) {
  const Snippet code{kPushRbp, {0x48, 0x89, 0x04, 0x24} /* mov %rax,(%rsp) */, kPopRbp, kReturn};
  EXPECT_EQ(code.row(0).outcome, Outcome::not_expressible);
}

TEST(CodeWalk, KeepsSavedRegistersAmongManyWords) {
  const Piece thirty_pushes(std::vector<std::byte>(30, std::byte{0x50}));  // push %rax
  const Piece remove_thirty{0x48, 0x81, 0xc4, 0xf0, 0, 0, 0};
  expect_code_rule((Snippet{kPushRbp, thirty_pushes, remove_thirty, kPopRbp, kReturn}).row(0), DDPROF_CFA_SP,
                   8);
  expect_code_rule((Snippet{thirty_pushes, kPushRbp, kPopRbp, remove_thirty, kReturn}).row(0), DDPROF_CFA_SP,
                   8);
}

TEST(CodeWalk, CallsMayWriteBelowTheStackPointerOnly) {
  const Snippet code{kPushRbx, {0xff, 0xd0}, branch_over(2), kPopRbx, kReturn, kAddRsp24, kLoseRbx, kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  const Snippet below{{0x48, 0x89, 0x5c, 0x24, 0xf8},  // mov %rbx,-8(%rsp)
                      {0xff, 0xd0},
                      branch_over(6),
                      {0x48, 0x8b, 0x5c, 0x24, 0xf8},
                      kReturn,
                      kAddRsp24,
                      kLoseRbx,
                      kReturn};
  EXPECT_EQ(below.row(0).outcome, Outcome::contradiction);
}

TEST(CodeWalk, DoesNotBelieveRegistersFromElsewhere) {
  const Snippet code{branch_over(4), {0x48, 0x8b, 0x18} /* mov (%rax),%rbx */, kReturn, kAddRsp24, kLoseRbx,
                     kReturn};
  EXPECT_EQ(code.row(0).outcome, Outcome::contradiction);
}

TEST(CodeWalk, ReadsOtherCodeWhenItIsStartedAnew) {
  const auto first = Piece{0x90, 0x5b, 0xc3}.bytes;  // pop %rbx
  const auto second = Piece{0x90, 0x90, 0xc3}.bytes;
  const auto call = Piece{0xe8, 1, 0, 0, 0, 0xc3, 0xc3}.bytes;
  CodeWalk walk;
  walk.start({kSnippetStart, first});
  expect_code_rule(walk.find(kSnippetStart), DDPROF_CFA_SP, 16);
  walk.start({kSnippetStart, second});
  expect_code_rule(walk.find(kSnippetStart), DDPROF_CFA_SP, 8);
  walk.start({2 * kSnippetStart, second});
  expect_code_rule(walk.find(2 * kSnippetStart), DDPROF_CFA_SP, 8);
  EXPECT_EQ(walk.find(kSnippetStart).outcome, Outcome::unknown_jump);
  walk.start({kSnippetStart, std::span(first).first(2)});
  EXPECT_EQ(walk.find(kSnippetStart).outcome, Outcome::unknown_jump);
  walk.start({kSnippetStart, first});
  expect_code_rule(walk.find(kSnippetStart), DDPROF_CFA_SP, 16);
  NoReturnFunctions named;
  named.addresses = {kSnippetStart + 6};
  walk.start({kSnippetStart, call});
  EXPECT_EQ(walk.find(kSnippetStart).outcome, Outcome::rule);
  walk.start({kSnippetStart, call}, &named);
  EXPECT_EQ(walk.find(kSnippetStart).outcome, Outcome::never_returns);
}

TEST(CodeWalk, KnowsWhenAJumpLeavesTheFunction) {
  expect_code_rule((Snippet{kLeave, kJumpToRax}).row(0), DDPROF_CFA_FP, 16, DDPROF_FP_AT_CFA, -16);
  const Snippet popped_elsewhere{{0x8f, 0x45, 0x08} /* pop 8(%rbp) */, kJumpToRax};
  EXPECT_EQ(popped_elsewhere.row(0).outcome, Outcome::unknown_jump);
}

TEST(CodeWalk, KnowsTheLoopThatTouchesPagesInBothEncodings) {
  const Snippet code{{0x48, 0x81, 0xec, 0, 0x10, 0, 0},
                     {0x49, 0x39, 0xe3},  // cmp %rsp,%r11
                     {0x75, 0xf4},
                     {0x48, 0x81, 0xc4, 0, 0, 2, 0},
                     kReturn};
  expect_code_rule(code.row(0), DDPROF_CFA_REGISTER + 11, 0x20008);
}

TEST(CodeWalk, RefusesFramePointersThatWereNotSavedInTheFrame) {
  const Piece load_far{0x48, 0x8b, 0x84, 0x24, 0x10, 1, 0, 0};  // mov 0x110(%rsp),%rax
  for (const Snippet& code : {
           Snippet{load_far, {0x48, 0x8b, 0x28} /* mov (%rax),%rbp */, {0x48, 0x8d, 0x20}, kReturn},
           Snippet{kPopRbp, {0x48, 0x83, 0xc5, 1} /* add $1,%rbp */, kReturn},
           Snippet{{0x48, 0x8b, 0x2c, 0x24} /* mov (%rsp),%rbp: the return address */, kReturn},
           Snippet{{0x48, 0x8b, 0x28} /* mov (%rax),%rbp */, kReturn},
           Snippet{{0x48, 0x8b, 0x2c, 0x24}, {0x48, 0x81, 0xc4, 0, 0, 1, 0}, kReturn},  // too far
       })
    EXPECT_EQ(code.row(0).outcome, Outcome::not_expressible);
  expect_code_rule((Snippet{{0x31, 0xed} /* xor %ebp,%ebp */, kReturn}).row(0), DDPROF_CFA_SP, 8);
}

TEST(CodeWalk, RefusesStackPointersThatARuleCannotSay) {
  const Piece load_top{0x48, 0x8b, 0x04, 0x24};  // mov (%rsp),%rax
  for (const Snippet& code : {
           Snippet{{0x48, 0x8b, 0x20} /* mov (%rax),%rsp */, kReturn},
           Snippet{{0x48, 0x8b, 0xa4, 0x24, 0, 0, 1, 0} /* mov 0x10000(%rsp),%rsp */, kReturn},
           Snippet{load_top, {0x48, 0x8d, 0xa0, 0, 0x80, 0, 0} /* lea 0x8000(%rax),%rsp */, kReturn},
           Snippet{{0x48, 0x8d, 0xa0, 0xff, 0xff, 0xff, 0x7f} /* lea 0x7fffffff(%rax),%rsp */, kReturn},
       })
    EXPECT_EQ(code.row(0).outcome, Outcome::not_expressible);
  for (const Snippet& code : {
           Snippet{{0x48, 0x83, 0xc4, 0x04} /* add $4,%rsp */, kReturn},
           Snippet{{0x48, 0x83, 0xe4, 0xf0} /* and $-16,%rsp */, kReturn},
           Snippet{load_top, {0x48, 0x8b, 0x20} /* mov (%rax),%rsp */, kReturn},
           Snippet{load_top, load_top, {0x48, 0x8b, 0x00}, {0x48, 0x8d, 0x60, 8}, kReturn},
       })
    EXPECT_EQ(code.row(0).outcome, Outcome::unknown_jump);
  // Below the frame pointer is still above the stack pointer.
  expect_code_rule((Snippet{{0x48, 0x8d, 0x65, 0xf8} /* lea -8(%rbp),%rsp */, kReturn}).row(0), DDPROF_CFA_FP,
                   0);
}

TEST(CodeWalk, StopsAtTwoReturnsThatAgree) {
  const Snippet code{branch_over(4), branch_over(1), kReturn, kReturn, kNothing, kNothing, kReturn};
  EXPECT_EQ(code.row(0).instructions, 4U);
}

TEST(CodeWalk, LooksForASecondReturnOnlySoFar) {
  std::vector<std::byte> bytes = Piece{0x74, 0x01, 0xc3}.bytes;
  bytes.resize(1000, std::byte{0x90});
  CodeWalk walk;
  walk.start({kSnippetStart, bytes});
  const CodeRow row = walk.find(kSnippetStart);
  expect_code_rule(row, DDPROF_CFA_SP, 8);
  EXPECT_EQ(row.instructions, 202U);
}

TEST(CodeWalk, KnowsHowFunctionsBegin) {
  const Piece padding(std::vector<std::byte>(14, std::byte{0x90}));
  const Piece call{0xff, 0xd0};  // its end is a multiple of 16
  for (const Snippet& code : {
           Snippet{padding, call, {0xf3, 0x0f, 0x1e, 0xfa}, kReturn},
           Snippet{padding, call, kPushRbx, kPopRbx, kReturn},
           Snippet{padding, call, kSubRsp24, kAddRsp24, kReturn},
       })
    EXPECT_EQ(code.row(1).outcome, Outcome::unknown_jump);
  const Piece push_rax{0x50};
  const Piece pop_rax{0x58};
  expect_code_rule((Snippet{padding, call, push_rax, pop_rax, kReturn}).row(1), DDPROF_CFA_SP, 8);
  expect_code_rule((Snippet{padding, call, kAddRsp24, kReturn}).row(1), DDPROF_CFA_SP, 32);
  expect_code_rule((Snippet{padding, call, {0x48, 0x8d, 0x65, 0xf8}, kReturn}).row(1), DDPROF_CFA_FP, 0);
  expect_code_rule((Snippet{padding, kNothing, call, kPushRbx, kPopRbx, kReturn}).row(2), DDPROF_CFA_SP, 8);
}

const Piece kCallBehindReturn{0xe8, 1, 0, 0, 0};

// Whether a function that calls these instructions goes on.
bool comes_back_from(std::initializer_list<unsigned> callee) {
  const auto row = Snippet{kCallBehindReturn, kReturn, Piece(callee)}.row(0);
  EXPECT_TRUE(row.outcome == Outcome::rule || row.outcome == Outcome::never_returns);
  return row.outcome == Outcome::rule;
}

TEST(CodeWalk, KnowsWhichFunctionsReturn) {
  EXPECT_TRUE(comes_back_from({0x90, 0xc3}));
  EXPECT_FALSE(comes_back_from({0x90, 0xf4}));
  EXPECT_TRUE(comes_back_from({0x74, 1, 0xf4, 0xc3}));  // je over hlt
  EXPECT_FALSE(comes_back_from({0x74, 1, 0xf4, 0xf4}));
  EXPECT_TRUE(comes_back_from({0xeb, 1, 0xf4, 0xc3}));   // jmp over hlt
  EXPECT_FALSE(comes_back_from({0xeb, 1, 0xc3, 0xf4}));  // jmp over ret
  EXPECT_FALSE(comes_back_from({0xeb, 0xfe}));           // jmp to itself
  EXPECT_TRUE(comes_back_from({0xff, 0xe0}));            // jmp *%rax
  EXPECT_FALSE(comes_back_from({0xff, 0xd0, 0xf4}));     // call *%rax; hlt
  EXPECT_TRUE(comes_back_from({0x06}));                  // not an instruction
  EXPECT_TRUE(comes_back_from({0xe8, 1, 0, 0, 0, 0xc3, 0xc3}));
  EXPECT_FALSE(comes_back_from({0xe8, 1, 0, 0, 0, 0xc3, 0xf4}));
}

TEST(CodeWalk, LooksIntoCalledFunctionsOnlySoFar) {
  const auto outcome_with = [](std::size_t instructions) {
    const Piece nothing(std::vector<std::byte>(instructions, std::byte{0x90}));
    return Snippet{kCallBehindReturn, kReturn, nothing, kHlt}.row(0).outcome;
  };
  EXPECT_EQ(outcome_with(199), Outcome::never_returns);
  EXPECT_EQ(outcome_with(200), Outcome::rule);
}

TEST(CodeWalk, LooksThreeCallsDeep) {
  const Piece& call = kCallBehindReturn;
  const Snippet three{call, kReturn, call, kReturn, call, kReturn, kHlt};
  EXPECT_EQ(three.row(0).outcome, Outcome::never_returns);
  const Snippet four{call, kReturn, call, kReturn, call, kReturn, call, kReturn, kHlt};
  EXPECT_EQ(four.row(0).outcome, Outcome::rule);
  // A call through a slot is one of them.
  NoReturnFunctions own;
  own.own_imports = {{0x2000, kSnippetStart + 12}};
  const Piece stub{0xff, 0x25, 0xf4, 0x0f, 0, 0};
  const Snippet by_slot{call, kReturn, stub, call, kReturn, kHlt};
  EXPECT_EQ(by_slot.row(0, &own).outcome, Outcome::never_returns);
  const Snippet deeper{call, kReturn, stub, call, kReturn, call, kReturn, kHlt};
  EXPECT_EQ(deeper.row(0, &own).outcome, Outcome::rule);
}

CodeRow caller_row(const std::vector<std::byte>& bytes, std::uint64_t offset) {
  CodeWalk walk;
  walk.start({kSnippetStart, bytes});
  return walk.find_caller(kSnippetStart + offset);
}

TEST(CodeWalk, CallersGoOnOnlyIfTheirCallReturns) {
  const CodeRow ended = caller_row(Piece{0xe8, 1, 0, 0, 0, 0xc3, 0x90, 0xf4}.bytes, 5);
  EXPECT_EQ(ended.outcome, Outcome::never_returns);
  EXPECT_EQ(ended.instructions, 2U);
  expect_code_rule(caller_row(Piece{0xe8, 1, 0, 0, 0, 0xc3, 0xc3}.bytes, 5), DDPROF_CFA_SP, 8);
  // An indirect call, and a jump to what does not return, say nothing.
  expect_code_rule(caller_row(Piece{0x90, 0x90, 0x90, 0xff, 0xd0, 0xc3}.bytes, 5), DDPROF_CFA_SP, 8);
  expect_code_rule(caller_row(Piece{0xe9, 1, 0, 0, 0, 0xc3, 0xf4}.bytes, 5), DDPROF_CFA_SP, 8);
  expect_code_rule(caller_row(Piece{0xc3}.bytes, 0), DDPROF_CFA_SP, 8);
  // Another function begins where the call would return to.
  std::vector<std::byte> bytes(16, std::byte{0x90});
  for (const unsigned byte : {0x53U, 0x5bU, 0xc3U}) bytes.push_back(static_cast<std::byte>(byte));
  EXPECT_EQ(caller_row(bytes, 16).outcome, Outcome::unknown_jump);
}

TEST(CodeWalk, ReadsThroughInstructionsOfAllKinds) {
  const Snippet code{{0xf3, 0x0f, 0x1e, 0xfa},  // endbr64
                     kPushRbx,
                     {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x47, 0x01},  // vmovdqu64 64(%rdi),%zmm0
                     {0x62, 0xf3, 0xfd, 0x48, 0x3b, 0xc0, 0x01},
                     {0xc5, 0xf8, 0x77},
                     {0x8f, 0xe8, 0x78, 0xc0, 0xc1, 0x05},
                     kPopRbx,
                     {0xf2, 0xc3}};  // bnd ret
  expect_code_rule(code.row(0), DDPROF_CFA_SP, 8);
  expect_code_rule(code.row(2), DDPROF_CFA_SP, 16);
}

}  // namespace
}  // namespace ddprof
