#include "unwind/unwinder_code.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace ddprof {
namespace {

constexpr auto kX86 = Architecture::x86_64;
constexpr auto kArm = Architecture::aarch64;

std::vector<std::byte> x86_bytes(std::initializer_list<unsigned> bytes) {
  std::vector<std::byte> made;
  for (const unsigned byte : bytes) made.push_back(static_cast<std::byte>(byte));
  return made;
}

std::vector<std::byte> arm_words(std::initializer_list<std::uint32_t> words) {
  std::vector<std::byte> made;
  for (const std::uint32_t word : words) {
    for (unsigned shift = 0; shift < 32; shift += 8) made.push_back(static_cast<std::byte>(word >> shift));
  }
  return made;
}

void expect_hint(std::initializer_list<unsigned> bytes, std::int64_t return_offset,
                 std::optional<std::int64_t> fp_offset = {}) {
  SCOPED_TRACE(testing::PrintToString(std::vector<unsigned>(bytes)));
  const auto hint = find_return_hint(kX86, x86_bytes(bytes));
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->return_offset, return_offset);
  EXPECT_EQ(hint->fp_offset, fp_offset);
  EXPECT_FALSE(hint->is_in_link_register);
}

void expect_no_hint(std::initializer_list<unsigned> bytes) {
  EXPECT_FALSE(find_return_hint(kX86, x86_bytes(bytes)))
      << testing::PrintToString(std::vector<unsigned>(bytes));
}

TEST(ReturnHint, BeforeTheFramePointerIsSetUp) {
  expect_hint({0x55}, 0);                          // push %rbp
  expect_hint({0xf3, 0x0f, 0x1e, 0xfa, 0x55}, 0);  // endbr64
  expect_hint({0x48, 0x89, 0xe5}, 8, 0);           // mov %rsp,%rbp, in both encodings
  expect_hint({0x48, 0x8b, 0xec}, 8, 0);
  expect_no_hint({0x48, 0x89, 0xe4});
  expect_no_hint({0x48, 0x89});
  expect_no_hint({});
}

TEST(ReturnHint, InAnEpilogue) {
  expect_hint({0xc3}, 0);
  expect_hint({0xf3, 0xc3}, 0);
  expect_hint({0xc2, 0x08, 0x00}, 0);
  expect_hint({0x48, 0x83, 0xc4, 0x10, 0xc3}, 16);           // add $16,%rsp
  expect_hint({0x48, 0x83, 0xc4, 0x00, 0xc3}, 0);            // add $0,%rsp
  expect_hint({0x48, 0x83, 0xc4, 0x08, 0x5d, 0xc3}, 16, 8);  // and pop %rbp
  expect_no_hint({0x48, 0x83, 0xc4, 0xf8, 0xc3});            // add $-8,%rsp
  expect_no_hint({0x48, 0x83, 0xc4, 0x10});                  // nothing that returns
  expect_no_hint({0x48, 0x83, 0xc0, 0x10, 0xc3});            // of another register
}

TEST(ReturnHint, CountsWhatIsPopped) {
  expect_hint({0x58, 0xc3}, 8);            // the first register
  expect_hint({0x5f, 0xc3}, 8);            // the last one
  expect_hint({0x5d, 0xc3}, 8, 0);         // %rbp
  expect_hint({0x41, 0x5d, 0xc3}, 8);      // %r13 is not %rbp
  expect_hint({0x41, 0x5c, 0xc3}, 8);      // %r12 is not %rsp
  expect_hint({0x5b, 0x5d, 0xc3}, 16, 8);  // %rbp second
  expect_no_hint({0x57, 0xc3});            // push %rdi
  expect_no_hint({0x60, 0xc3});
  expect_no_hint({0x5c, 0xc3});  // %rsp itself
  expect_no_hint({0x58});
  expect_no_hint({0x41});
}

TEST(ReturnHint, InAnImportStub) {
  expect_hint({0xff, 0x25}, 0);                    // jmp *slot
  expect_hint({0xf2, 0xff, 0x25}, 0);              // bnd
  expect_hint({0x68, 1, 0, 0, 0, 0xe9}, 0);        // push $index; jmp
  expect_hint({0x68, 1, 0, 0, 0, 0xf2, 0xe9}, 0);  // push $index; bnd jmp
  expect_no_hint({0x68, 1, 0, 0, 0, 0x90, 0x90, 0x90});
  expect_no_hint({0x68, 1, 0, 0, 0});
  expect_no_hint({0x69, 1, 0, 0, 0, 0xe9});
  expect_no_hint({0xff, 0x15});  // call *slot
}

TEST(AfterCall, KnowsEveryLengthOfACall) {
  for (const auto& bytes :
       {x86_bytes({0xe8, 1, 2, 3, 4}), x86_bytes({0xff, 0xd0}), x86_bytes({0x41, 0xff, 0xd3}),
        x86_bytes({0xff, 0x10}), x86_bytes({0xff, 0x14, 0x24}), x86_bytes({0xff, 0x50, 8}),
        x86_bytes({0xff, 0x54, 0x24, 8}), x86_bytes({0xff, 0x15, 1, 2, 3, 4}),
        x86_bytes({0xff, 0x90, 1, 2, 3, 4}), x86_bytes({0xff, 0x94, 0x24, 1, 2, 3, 4}),
        x86_bytes({0xff, 0x14, 0x25, 1, 2, 3, 4}),
        x86_bytes({0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0})}) {
    EXPECT_TRUE(is_after_call(kX86, bytes)) << testing::PrintToString(bytes);
  }
}

TEST(AfterCall, IsNotTakenForAnythingElse) {
  for (const auto& bytes :
       {x86_bytes({}), x86_bytes({0xd0}), x86_bytes({0xff}), x86_bytes({0xff, 0xe0}),
        x86_bytes({0xff, 0xd0, 0x90}), x86_bytes({0xff, 0x10, 0x90}), x86_bytes({0xff, 0x14}),
        x86_bytes({0xff, 0x50}), x86_bytes({0xff, 0x54, 0x24}), x86_bytes({0xff, 0x15, 1, 2}),
        x86_bytes({0xff, 0x14, 0x25}), x86_bytes({0xff, 0x90}), x86_bytes({0xe8, 1, 2, 3}),
        x86_bytes({0xe9, 1, 2, 3, 4}), x86_bytes({0xfe, 0xd0}), x86_bytes({0xff, 0x55, 0x24, 8}),
        x86_bytes({0xff, 0x10, 1, 2, 3, 4})}) {
    EXPECT_FALSE(is_after_call(kX86, bytes)) << testing::PrintToString(bytes);
  }
}

constexpr std::uint32_t kRet = 0xd65f03c0, kPaciasp = 0xd503233f, kBtiC = 0xd503245f, kNop = 0xd503201f;

TEST(ReturnHint, OfAarch64IsInTheLinkRegister) {
  for (const auto& bytes : {arm_words({kRet}), arm_words({0xd65f0bff}), arm_words({0xa9bf7bfd}),
                            arm_words({kPaciasp, 0xa9bf7bfd}), arm_words({kBtiC, kPaciasp, kRet})}) {
    const auto hint = find_return_hint(kArm, bytes);
    ASSERT_TRUE(hint) << testing::PrintToString(bytes);
    EXPECT_TRUE(hint->is_in_link_register);
    EXPECT_FALSE(hint->fp_offset);
  }
  EXPECT_FALSE(find_return_hint(kArm, arm_words({kNop, kRet})));
  EXPECT_FALSE(find_return_hint(kArm, arm_words({kPaciasp})));
  EXPECT_FALSE(find_return_hint(kArm, {}));
}

TEST(AfterCall, OfAarch64) {
  EXPECT_TRUE(is_after_call(kArm, arm_words({0x94000010})));        // bl
  EXPECT_TRUE(is_after_call(kArm, arm_words({kNop, 0xd63f0100})));  // blr x8
  EXPECT_TRUE(is_after_call(kArm, arm_words({0xd73f0909})));        // blraa
  EXPECT_FALSE(is_after_call(kArm, arm_words({0x14000010})));       // b
  EXPECT_FALSE(is_after_call(kArm, arm_words({0x94000010, kNop})));
  EXPECT_FALSE(is_after_call(kArm, x86_bytes({0, 0, 0x94})));
}

TEST(DirectCall, LeadsThere) {
  EXPECT_EQ(direct_call_target(kX86, x86_bytes({0x90, 0xe8, 0x10, 0, 0, 0}), 0x1000), 0x1010U);
  EXPECT_EQ(direct_call_target(kX86, x86_bytes({0xe8, 0xf0, 0xff, 0xff, 0xff}), 0x1000), 0xff0U);
  EXPECT_FALSE(direct_call_target(kX86, x86_bytes({0xe8, 0, 0, 0}), 0x1000));
  EXPECT_FALSE(direct_call_target(kX86, x86_bytes({0, 0, 0, 0xff, 0xd0}), 0x1000));
  EXPECT_FALSE(direct_call_target(kX86, {}, 0x1000));
  EXPECT_EQ(direct_call_target(kArm, arm_words({0x94000010}), 0x1004), 0x1040U);
  EXPECT_EQ(direct_call_target(kArm, arm_words({0x97ffffff}), 0x1004), 0xffcU);
  EXPECT_FALSE(direct_call_target(kArm, arm_words({0xd63f0100}), 0x1004));
  EXPECT_FALSE(direct_call_target(kArm, {}, 0x1004));
}

TEST(ImportStub, JumpsThroughASlot) {
  EXPECT_TRUE(is_import_stub(kX86, x86_bytes({0xff, 0x25, 0, 0, 0, 0})));
  EXPECT_TRUE(is_import_stub(kX86, x86_bytes({0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0})));
  EXPECT_FALSE(is_import_stub(kX86, x86_bytes({0x55, 0x48, 0x89, 0xe5})));
  EXPECT_FALSE(is_import_stub(kX86, {}));
}

TEST(SignalTrampoline, CallsSigreturnAndNothingElse) {
  EXPECT_TRUE(is_signal_trampoline(kX86, x86_bytes({0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05})));
  EXPECT_TRUE(is_signal_trampoline(kX86, x86_bytes({0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05})));
  EXPECT_FALSE(is_signal_trampoline(kX86, x86_bytes({0xb8, 0x10, 0, 0, 0, 0x0f, 0x05})));
  EXPECT_FALSE(is_signal_trampoline(kX86, x86_bytes({0xb8, 0x0f, 0, 0, 0, 0x0f})));
  EXPECT_TRUE(is_signal_trampoline(kArm, arm_words({0xd2801168, 0xd4000001})));
  EXPECT_FALSE(is_signal_trampoline(kArm, arm_words({0xd2801168, kNop})));
  EXPECT_FALSE(is_signal_trampoline(kArm, arm_words({kNop, 0xd4000001})));
  EXPECT_FALSE(is_signal_trampoline(kArm, arm_words({0xd2801168})));
}

TEST(AfterSystemCall, AllowsTheTestOfItsResult) {
  EXPECT_TRUE(is_after_system_call(x86_bytes({0x0f, 0x05})));
  EXPECT_TRUE(is_after_system_call(x86_bytes({0x90, 0x0f, 0x05})));
  EXPECT_TRUE(is_after_system_call(x86_bytes({0x0f, 0x05, 0x48, 0x85, 0xc0})));
  EXPECT_TRUE(is_after_system_call(x86_bytes({0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x10})));
  EXPECT_FALSE(is_after_system_call(x86_bytes({0x0f, 0x05, 0x90})));
  EXPECT_FALSE(is_after_system_call(x86_bytes({0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7d, 0x10})));
  EXPECT_FALSE(is_after_system_call(x86_bytes({0x48, 0x85, 0xc0})));
  EXPECT_FALSE(is_after_system_call(x86_bytes({0x05})));
  EXPECT_FALSE(is_after_system_call({}));
}

}  // namespace
}  // namespace ddprof
