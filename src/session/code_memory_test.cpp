#include "session/code_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

class CodeMemoryTest : public testing::Test {
 protected:
  CodeBytes find(std::uint64_t address, Nanoseconds now, bool is_doubted = false) {
    code_.begin_stack(now);
    return code_.find(self_, module_, Address{address}, is_doubted, now);
  }

  const Pid self_{::getpid()};
  Module module_{.start = Address{0x10000000}, .end = Address{0x20000000}, .is_generated = true};
  int reads_ = 0;
  int checks_ = 0;
  std::byte content_{1};
  ForeignMemory memory_{ForeignMemory::Limits(), [this](Pid, Address from, std::span<std::byte> into) {
                          ++(into.size() > 512 ? reads_ : checks_);
                          EXPECT_TRUE(module_.contains(from));
                          EXPECT_LE(from.value + into.size(), module_.end.value);
                          std::fill(into.begin(), into.end(), content_);
                          return into.size();
                        }};
  CodeMemory code_{memory_};
};

TEST_F(CodeMemoryTest, ReadsAWindowAroundAnAddressOnce) {
  const CodeBytes code = find(0x10100010, 100s);
  EXPECT_EQ(code.bytes.size(), CodeMemory::kWindowBytes);
  EXPECT_GE(code.before(0x10100010, 4096).size(), 4096U);
  EXPECT_GE(code.at(0x1010ffff).size(), std::size_t{128} << 10U) << "also behind the end of its block";
  EXPECT_NE(code.version, 0U);
  EXPECT_EQ(find(0x10100020, 100s).version, code.version);
  EXPECT_EQ(find(0x10100020, 100s + 10ms, true).version, code.version);
  EXPECT_EQ(reads_, 1);
  EXPECT_NE(find(0x10200000, 100s).version, code.version);
  EXPECT_EQ(reads_, 2);
}

TEST_F(CodeMemoryTest, StaysInsideOfTheModule) {
  EXPECT_EQ(find(0x10000000, 100s).begin, 0x10000000U);
  const CodeBytes last = find(0x1fffffff, 100s);
  EXPECT_EQ(last.begin + last.bytes.size(), 0x20000000U);
  module_.end = Address{0x10000100};
  EXPECT_EQ(find(0x10000000, 100s).bytes.size(), 0x100U) << "it is another one now";
}

TEST_F(CodeMemoryTest, IsReadAgainWhenItIsOldOrInDoubt) {
  const std::uint64_t first = find(0x10100000, 100s).version;
  EXPECT_EQ(find(0x10100000, 101s).version, first) << "the same bytes";
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(find(0x10100000, 102s).version, first);
  EXPECT_EQ(reads_, 2) << "those that have not changed are trusted for longer";
  EXPECT_EQ(find(0x10100000, 102s + 500ms).version, first);
  EXPECT_EQ(find(0x10100000, 102s + 500ms, true).version, first);
  EXPECT_EQ(reads_, 3);
}

TEST_F(CodeMemoryTest, ForEachStackTheBytesAroundTheAddressAreCompared) {
  const std::uint64_t first = find(0x10100000, 100s).version;
  EXPECT_EQ(checks_, 0);
  EXPECT_EQ(find(0x10100000, 100s + 1ms).version, first);
  code_.find(self_, module_, Address{0x10100000}, false, 100s + 1ms);
  EXPECT_EQ(checks_, 1) << "once for a stack";
  content_ = std::byte{2};
  const CodeBytes changed = find(0x10100000, 100s + 2ms);
  EXPECT_NE(changed.version, first);
  EXPECT_EQ(changed.bytes.front(), content_);
  // Which code was there when an older sample was taken is not known.
  code_.begin_stack(100s + 1ms);
  EXPECT_TRUE(code_.find(self_, module_, Address{0x10100000}, false, 100s + 3ms).bytes.empty());
  EXPECT_EQ(find(0x10100000, 100s + 3ms).version, changed.version);
}

TEST_F(CodeMemoryTest, WhatAStackLooksAtStaysWhileItDoes) {
  const CodeBytes before = find(0x10100000, 100s);
  content_ = std::byte{2};
  EXPECT_TRUE(code_.find(self_, module_, Address{0x10100000}, true, 101s).bytes.empty())
      << "older than the change";
  EXPECT_EQ(before.bytes.front(), std::byte{1});
  EXPECT_EQ(before.bytes.back(), std::byte{1});
}

TEST_F(CodeMemoryTest, OfOneProcessSoMuchIsReadInASecond) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const bool has_code = !find(0x10000000 + i * 0x100000, 100s).bytes.empty();
    EXPECT_EQ(has_code, i < CodeMemory::kMostReadsPerSecond) << i;
  }
  EXPECT_EQ(reads_, static_cast<int>(CodeMemory::kMostReadsPerSecond));
  EXPECT_EQ(code_.refusals(), 100U - CodeMemory::kMostReadsPerSecond);
  EXPECT_FALSE(find(0x10000000 + 50 * 0x100000, 101s).bytes.empty());
}

TEST_F(CodeMemoryTest, HoldsSoManyWindowsAndThoseThatAreUsed) {
  for (std::uint64_t i = 0; i < 255; ++i) {
    find(0x10000000, 100s + i * 1s);
    find(0x10000000 + i * 0x100000, 100s + i * 1s);
    EXPECT_LE(code_.size(), CodeMemory::kMostWindows + 1);
  }
  const int reads = reads_;
  find(0x10000000, 354s);
  EXPECT_EQ(reads_, reads);
  code_.forget_unused();
  find(0x10000000, 354s);
  code_.forget_unused();
  EXPECT_EQ(code_.size(), 1U);
  code_.forget_all();
  EXPECT_EQ(code_.size(), 0U);
}

TEST_F(CodeMemoryTest, WhatCannotBeReadIsNotKnown) {
  ForeignMemory refusing(ForeignMemory::Limits(), [this](Pid, Address, std::span<std::byte>) {
    ++reads_;
    return std::size_t{0};
  });
  CodeMemory code(refusing);
  EXPECT_TRUE(code.find(self_, module_, Address{0x10100000}, false, 100s).bytes.empty());
  EXPECT_TRUE(code.find(self_, module_, Address{0x10100000}, false, 100s + 500ms).bytes.empty());
  EXPECT_EQ(reads_, 1);
}

}  // namespace
}  // namespace ddprof
