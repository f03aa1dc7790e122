// Code that a process has generated: its bytes come from its memory, and may change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kKernel = 0x40000;
constexpr FileId kKernelFile{7};

// The memory of a process: generated code, and words of another stack than the one that was copied.
class FakeProcess final : public MemoryReader {
 public:
  std::size_t read(Address address, std::span<std::byte> into) override {
    const auto bytes = std::as_bytes(std::span(words));
    const std::uint64_t offset = address.value - words_at;
    if (offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
    return count;
  }
  [[nodiscard]] Nanoseconds now() const override { return time; }
  CodeBytes read_code(const Module& module, Address address, bool is_doubted) override {
    EXPECT_TRUE(module.is_generated && module.contains(address));
    if (is_doubted && !next_code.empty()) {
      code = std::exchange(next_code, {});
      ++version;
    }
    return {module.start.value, std::as_bytes(std::span(code)), version};
  }

  std::vector<std::uint64_t> words;
  std::uint64_t words_at = 0;
  Nanoseconds time{};
  std::vector<unsigned char> code;
  std::vector<unsigned char> next_code;  // what is there by now
  std::uint64_t version = 1;
};

class UnwinderGenerated : public testing::Test {
 protected:
  static constexpr std::uint64_t kMain = 0x100;
  static constexpr std::uint64_t kReturn = kProgramStart + kMain + 0x10;

  UnwinderGenerated() {
    main_code_[kMain + 0x0e] = std::byte{0xff};  // call *%rax
    main_code_[kMain + 0x0f] = std::byte{0xd0};
    scene_.add_module(kProgramStart, kProgram, {{kMain, kEndRule}}, main_code_);
    scene_.map.add({.start = Address{kKernel},
                    .end = Address{kKernel + 0x1000},
                    .file = kKernelFile,
                    .is_generated = true});
    scene_.registers.pc = kKernel;
    scene_.registers.fp = 12345;
  }
  const Stack& unwind() { return scene_.unwind(scene_.copy(), &outer_, &process_); }

  std::array<std::byte, UnwindScene::kModuleBytes> main_code_{};
  UnwindScene scene_;
  FakeProcess process_;
  OuterFrames outer_;
};

const std::vector<unsigned char> kFrameOf16{0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};  // add; pop %rbx; ret
const std::vector<unsigned char> kFrameOf32{0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3};

TEST_F(UnwinderGenerated, HasRulesFromItsBytes) {
  process_.code = kFrameOf16;
  scene_.push({0, 0, 1, kReturn});
  const Stack& stack = unwind();
  EXPECT_EQ(stack.reason, StopReason::complete);
  ASSERT_EQ(stack.frames.size(), 2U);
  EXPECT_EQ(stack.frames[0].file, kKernelFile);
  EXPECT_EQ(stack.frames[0].address, kKernel);
  EXPECT_EQ(stack.frames[1].address, kMain + 0x0f);
  EXPECT_EQ(stack.frames_from_code, 1U);
}

TEST_F(UnwinderGenerated, IsNotKnownWithoutTheRightToReadIt) {
  scene_.push({0, 0, 1, kReturn});
  EXPECT_EQ(unwind().reason, StopReason::no_unwind_info);
  EXPECT_EQ(scene_.unwind().reason, StopReason::no_unwind_info) << "nothing that reads";
}

TEST_F(UnwinderGenerated, CallersAreLeftByTheSameBytesAndVerifiedInThem) {
  // sub; call *%rax; add; ret: the leaf is a function of the program that it has called.
  process_.code = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3};
  scene_.registers.pc = kProgramStart + 0x200;
  scene_.add_module(kProgramStart, kProgram, {{kMain, kEndRule}, {0x200, sp_rule(8)}}, main_code_);
  scene_.push({kKernel + 6, 0, 0, 0, kReturn});
  EXPECT_EQ(unwind().reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 3U);
  EXPECT_EQ(scene_.result.frames[1].address, kKernel + 5);
}

TEST_F(UnwinderGenerated, IsReadAgainWhenItHasLedNowhere) {
  process_.code = kFrameOf16;
  process_.next_code = kFrameOf32;
  scene_.push({0, 0, 0, 0, 1, kReturn});
  EXPECT_EQ(unwind().reason, StopReason::complete);
  EXPECT_EQ(process_.version, 2U);
  EXPECT_EQ(unwind().reason, StopReason::complete) << "by the rule of the new code";
  EXPECT_EQ(unwind().frames.size(), 2U);
}

TEST_F(UnwinderGenerated, AnInterpreterMayPushWhereItReturnsTo) {
  process_.code.assign(64, 0x90);  // no call anywhere
  scene_.registers.fp = scene_.address_of(0);
  scene_.push({scene_.address_of(2), kKernel + 32, 0, kReturn});
  EXPECT_EQ(unwind().reason, StopReason::complete);
  EXPECT_EQ(unwind().frames.size(), 3U);
}

// A kernel that has saved its stack pointer and computes on a buffer.
TEST_F(UnwinderGenerated, MayHaveTakenAnotherStack) {
  process_.code = {0x48, 0x8b, 0x64, 0x24, 0x08, 0x5b, 0xc3};  // mov 8(%rsp),%rsp; pop %rbx; ret
  process_.words_at = 0x7fff00000000;
  process_.words = {1, kReturn};
  process_.time = Nanoseconds{110};
  scene_.push({0, process_.words_at, 0, 0});
  StackCopy copy = scene_.copy();
  copy.taken_at = Nanoseconds{100};
  EXPECT_EQ(scene_.unwind(copy, nullptr, &process_).reason, StopReason::truncated_copy)
      << "so that it is asked again with what is known of the thread";
  EXPECT_EQ(scene_.unwind(copy, &outer_, &process_).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 2U);
  EXPECT_EQ(scene_.result.outer_frames, 1U);
  process_.words[1] = kReturn + 8;  // by then something else is there
  outer_ = {};
  EXPECT_EQ(scene_.unwind(copy, &outer_, &process_).reason, StopReason::truncated_copy);
  EXPECT_EQ(scene_.result.frames.size(), 1U);
}

}  // namespace
}  // namespace ddprof
