#include "unwind/swept_functions.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>

#include <initializer_list>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kSweptBegin = 0x1000;

// Lines of 16 bytes, filled with one-byte nops. Where functions begin, as numbers of lines.
std::vector<std::uint64_t> lines_that_begin(std::initializer_list<std::vector<unsigned>> lines,
                                            bool has_ended = true) {
  std::vector<std::byte> code;
  for (const auto& line : lines) {
    for (const unsigned byte : line) code.push_back(static_cast<std::byte>(byte));
    code.resize((code.size() + 15) / 16 * 16, std::byte{0x90});
  }
  std::vector<std::uint64_t> numbers;
  for (const std::uint64_t start : sweep_for_functions(code, kSweptBegin, has_ended)) {
    EXPECT_EQ(start % 16, 0U);
    numbers.push_back((start - kSweptBegin) / 16);
  }
  return numbers;
}

using Lines = std::vector<std::uint64_t>;
const std::vector<unsigned> kReturns{0x31, 0xc0, 0xc3};  // xor %eax,%eax; ret

TEST(SweptFunctions, BeginBehindAnEnd) {
  EXPECT_EQ(lines_that_begin({kReturns, kReturns}), (Lines{0, 1}));
  EXPECT_EQ(lines_that_begin({{0xff, 0xe0} /* jmp *%rax */, kReturns}), (Lines{0, 1}));
  EXPECT_EQ(lines_that_begin({{0x0f, 0x0b} /* ud2 */, kReturns}), (Lines{0, 1}));
  EXPECT_EQ(lines_that_begin({{0x31, 0xc0}, kReturns}), (Lines{0})) << "nothing ends there";
}

TEST(SweptFunctions, BeginBehindACallThatMayNotReturn) {
  EXPECT_EQ(lines_that_begin({{0xff, 0xd0} /* call *%rax */, kReturns}), (Lines{0, 1}));
}

TEST(SweptFunctions, DoNotBeginWhereABranchLeadsOver) {
  EXPECT_EQ(lines_that_begin({{0x74, 0x0e} /* je to the second line */, kReturns, kReturns}), (Lines{0, 2}));
  std::vector<unsigned> leaves{0x74, 0x0e, 0xc3};
  EXPECT_EQ(lines_that_begin({leaves, kReturns, kReturns}), (Lines{0, 2}));
}

TEST(SweptFunctions, DoNotBeginAtALoop) {
  // call *%rax; and in the next line: dec %ecx; jne to its start; ret
  EXPECT_EQ(lines_that_begin({{0xff, 0xd0}, {0xff, 0xc9, 0x75, 0xfc, 0xc3}, kReturns}), (Lines{0, 2}));
  // ret; and in the next line a branch back over it
  EXPECT_EQ(lines_that_begin({{0x31, 0xc0, 0xc3}, {0x75, 0xf0, 0xc3}, kReturns}), (Lines{0, 2}));
}

TEST(SweptFunctions, BeginWhereTheyAreCalled) {
  // Not aligned, right behind a return.
  const auto starts =
      sweep_for_functions(std::as_bytes(std::span("\xe8\x01\0\0\0\xc3\x31\xc0\xc3", 9)), kSweptBegin, true);
  EXPECT_EQ(starts, (std::vector<std::uint64_t>{kSweptBegin, kSweptBegin + 6}));
  // call to the next instruction: how 32-bit code finds itself
  EXPECT_EQ(sweep_for_functions(std::as_bytes(std::span("\xe8\0\0\0\0\xc3", 6)), kSweptBegin, true).size(),
            1U);
}

TEST(SweptFunctions, MayHaveBegunBefore) {
  EXPECT_EQ(lines_that_begin({kReturns, kReturns}, false), (Lines{1}));
}

TEST(SweptFunctions, ReadOnBehindData) {
  EXPECT_EQ(lines_that_begin({kReturns, {0x06, 0x07, 0xc3}, kReturns}), (Lines{0, 2}));
}

// libc, as if it had no unwind information: nine of ten addresses are in the function that it tells.
TEST(SweptFunctions, AreThoseOfUnwindInformation) {
  link_map* map = nullptr;
  ASSERT_EQ(::dlinfo(::dlopen("libc.so.6", RTLD_LAZY), RTLD_DI_LINKMAP, static_cast<void*>(&map)), 0);
  const UniqueFd fd(::open(map->l_name, O_RDONLY | O_CLOEXEC));
  const MappedRegion image = MappedRegion::map_file(fd.get()).value();
  const ElfFile file = ElfFile::parse(image.bytes()).value();
  const FunctionRanges ranges(file);
  SweptFunctions swept(file);
  std::size_t addresses = 0;
  std::size_t same = 0;
  for (const ElfSegment& segment : file.segments()) {
    if ((segment.flags & PF_X) == 0 || segment.type != PT_LOAD) continue;
    for (std::uint64_t at = 0; at < segment.filesz; at += 37) {
      const auto told = ranges.find(segment.vaddr + at);
      if (!told) continue;
      ++addresses;
      const auto found = swept.find_in({0, UINT64_MAX}, segment.vaddr + at);
      ASSERT_TRUE(found);
      EXPECT_LE(found->begin, segment.vaddr + at);
      EXPECT_GT(found->end, segment.vaddr + at);
      same += found->begin == told->begin ? 1 : 0;
      EXPECT_EQ(swept.find(segment.vaddr + at, ranges)->begin, told->begin);
    }
  }
  EXPECT_GT(addresses, 10000U);
  EXPECT_GT(static_cast<double>(same), 0.85 * static_cast<double>(addresses));
  EXPECT_GT(swept.memory_bytes(), 1000U);
  EXPECT_FALSE(swept.find_in({0, UINT64_MAX}, 0)) << "no code";
}

}  // namespace
}  // namespace ddprof
