#include "process/thread_context.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

std::string record_of(std::string_view attributes, char valid = 1) {
  std::string record = "0123456789abcdef";
  record += std::string("\0\0\0\0\0\0\1\2", 8) + valid + '\0';
  record += static_cast<char>(attributes.size());
  record += '\0';
  return record += attributes;
}

std::optional<ThreadContext> parse(const std::string& record) {
  return parse_thread_context(std::as_bytes(std::span(record)));
}

auto attribute(int key, const char* text) {
  return AllOf(Field(&ThreadContext::Attribute::key, key), Field(&ThreadContext::Attribute::text, text));
}

TEST(ThreadContextRecord, HasATraceASpanAndAttributes) {
  const std::string record = record_of(std::string("\0\2ab\3\1c", 7));
  const auto context = parse(record);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id[1], '1');
  EXPECT_EQ(context->span_id, 0x102U);
  EXPECT_THAT(context->attributes, ElementsAre(attribute(0, "ab"), attribute(3, "c")));
}

TEST(ThreadContextRecord, OfAKeyThatIsThereTwiceTheLastCounts) {
  const std::string record = record_of(std::string("\1\1a\2\1b\1\1c", 9));
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(2, "b"), attribute(1, "c")));
}

TEST(ThreadContextRecord, IsNoneWhileItIsWritten) { EXPECT_FALSE(parse(record_of("", 0))); }

TEST(ThreadContextRecord, IsNoneWhenItIsCut) { EXPECT_FALSE(parse(record_of("").substr(0, 27))); }

TEST(ThreadContextRecord, AttributesEndWhereTheBytesDo) {
  std::string record = record_of(std::string("\1\1a\2\77b", 6));
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(1, "a")));
  record[26] = '\377';
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(1, "a")));
  EXPECT_THAT(parse(record_of("x"))->attributes, IsEmpty());
}

using Slot = ThreadSymbol::Slot;

// Words of memory by their addresses.
ReadTarget memory_of(const std::map<std::uint64_t, std::uint64_t>& words) {
  return [words](Address from, std::span<std::byte> to) {
    for (std::size_t at = 0; at < to.size(); at += 8) {
      const auto word = words.find(from.value + at);
      if (word == words.end()) return false;
      std::memcpy(to.data() + at, &word->second, 8);
    }
    return true;
  };
}

constexpr std::uint64_t kBias = 0x7f0000000000;

std::optional<ThreadVariable> locate(Slot::Kind kind, const std::map<std::uint64_t, std::uint64_t>& words) {
  const ThreadSymbol symbol{.offset = 0x40, .slots = {{kind, 0x4000}}};
  return locate_in_library(symbol, kBias, memory_of(words));
}

TEST(ThreadVariableFinder, FindsAVariableOfTheProgramBelowTheThreadPointer) {
  const ThreadSymbol symbol{.offset = 8, .executable_offset = -24};
  EXPECT_EQ(locate_in_executable(symbol), (ThreadVariable{ThreadVariable::Kind::fixed, -24, 0}));
}

TEST(ThreadVariableFinder, ADescriptorMayHoldTheDistanceItself) {
  const auto found = locate(Slot::Kind::descriptor,
                            {{kBias + 0x4000, 0x7f1234}, {kBias + 0x4008, static_cast<std::uint64_t>(-64)}});
  EXPECT_EQ(found, (ThreadVariable{ThreadVariable::Kind::fixed, -64, 0}));
}

TEST(ThreadVariableFinder, ADescriptorMayPointToModuleAndOffset) {
  const auto found =
      locate(Slot::Kind::descriptor,
             {{kBias + 0x4000, 0x7f1234}, {kBias + 0x4008, 0x5000}, {0x5000, 3}, {0x5008, 0x40}});
  EXPECT_EQ(found, (ThreadVariable{ThreadVariable::Kind::dynamic, 0x40, 3}));
}

TEST(ThreadVariableFinder, ReadsAPairOfModuleAndOffset) {
  const auto found = locate(Slot::Kind::index, {{kBias + 0x4000, 2}, {kBias + 0x4008, 0x40}});
  EXPECT_EQ(found, (ThreadVariable{ThreadVariable::Kind::dynamic, 0x40, 2}));
}

TEST(ThreadVariableFinder, ReadsADistance) {
  const auto found = locate(Slot::Kind::offset, {{kBias + 0x4000, static_cast<std::uint64_t>(-16)}});
  EXPECT_EQ(found, (ThreadVariable{ThreadVariable::Kind::fixed, -16, 0}));
}

TEST(ThreadVariableFinder, BelievesNothingThatCannotBe) {
  EXPECT_FALSE(locate(Slot::Kind::index, {{kBias + 0x4000, 2}, {kBias + 0x4008, 0x48}}));
  EXPECT_FALSE(locate(Slot::Kind::index, {{kBias + 0x4000, 1 << 20}, {kBias + 0x4008, 0x40}}));
  EXPECT_FALSE(locate(Slot::Kind::offset, {{kBias + 0x4000, 16}}));
  EXPECT_FALSE(locate(Slot::Kind::descriptor, {{kBias + 0x4000, 0}, {kBias + 0x4008, 0}}));
  EXPECT_FALSE(locate(Slot::Kind::descriptor, {}));
}

// The C library has such a variable itself, at a distance that everybody can measure.
TEST(ThreadVariableFinder, FindsErrnoWhereItIs) {
  Dl_info library{};
  // A function that sanitizers leave alone.
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::gnu_get_libc_version), &library), 0);
  const UniqueFd file(::open(library.dli_fname, O_RDONLY | O_CLOEXEC));
  const auto image = MappedRegion::map_file(file.get());
  ASSERT_TRUE(image.ok());
  const auto elf = ElfFile::parse(image->bytes());
  ASSERT_TRUE(elf.ok());
  const auto symbol = find_thread_symbol(*elf, "errno");
  ASSERT_TRUE(symbol);
  const auto found = locate_in_library(
      *symbol, reinterpret_cast<std::uint64_t>(library.dli_fbase), [](Address from, std::span<std::byte> to) {
        std::memcpy(to.data(), reinterpret_cast<void*>(from.value), to.size());
        return true;
      });
  const auto distance =
      reinterpret_cast<std::intptr_t>(&errno) - reinterpret_cast<std::intptr_t>(__builtin_thread_pointer());
  EXPECT_EQ(found, (ThreadVariable{ThreadVariable::Kind::fixed, distance, 0}));
}

}  // namespace

}  // namespace ddprof
