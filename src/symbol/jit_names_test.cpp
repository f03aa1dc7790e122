#include "symbol/jit_names.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ddprof {
namespace {

std::string name_at(const JitNames& map, std::uint64_t address) {
  const std::optional<JitSymbol> symbol = map.find(address);
  return symbol ? std::string(symbol->name) : "";
}

TEST(JitNames, ReadsNamesWithSpacesAndAllSpellingsOfNumbers) {
  const JitNames map =
      JitNames::parse("1000 10 void Foo.bar(int, int)\n0x2000 0x20 second\nABCD00 F third\r\n");
  EXPECT_EQ(name_at(map, 0x100f), "void Foo.bar(int, int)");
  EXPECT_EQ(name_at(map, 0x1010), "");
  EXPECT_EQ(name_at(map, 0x201f), "second");
  EXPECT_EQ(name_at(map, 0xabcd0e), "third");
  EXPECT_EQ(map.skipped_lines(), 0U);
}

TEST(JitNames, LetsTheLaterLineWin) {
  const JitNames map = JitNames::parse("1000 100 old\n1040 20 new\n");
  EXPECT_EQ(name_at(map, 0x103f), "old");
  EXPECT_EQ(name_at(map, 0x1040), "new");
  EXPECT_EQ(name_at(map, 0x105f), "new");
  EXPECT_EQ(name_at(map, 0x1060), "old");
}

TEST(JitNames, IgnoresALineThatIsStillBeingWritten) {
  EXPECT_EQ(JitNames::parse("1000 10 whole\n2000 10 par").size(), 1U);
  EXPECT_EQ(JitNames::parse("1000 10 par").size(), 0U);
}

TEST(JitNames, CountsLinesThatItCannotRead) {
  const JitNames map =
      JitNames::parse("\nnonsense\n1000\n1000 10\n1000 0 empty\nffffffffffffffff 2 wraps\n1000 10 good\n");
  EXPECT_EQ(map.skipped_lines(), 6U);
  EXPECT_EQ(map.size(), 1U);
}

TEST(JitNames, BoundsNames) {
  const JitNames map = JitNames::parse("1000 10 " + std::string(5000, 'x') + "\n");
  EXPECT_EQ(name_at(map, 0x1000).size(), JitNames::kMaxNameBytes);
}

TEST(JitNames, AgreesWithAnArrayOfBytes) {
  std::mt19937 random(4);  // NOLINT: repeatable
  std::map<std::uint64_t, std::string> expected;
  std::string text;
  for (int line = 0; line < 300; ++line) {
    const std::uint64_t start = 0x100 + random() % 400, size = 1 + random() % 60;
    char number[64];
    std::snprintf(number, sizeof number, "%llx %llx f%d\n", static_cast<unsigned long long>(start),
                  static_cast<unsigned long long>(size), line);
    text += number;
    for (std::uint64_t at = start; at < start + size; ++at) expected[at] = "f" + std::to_string(line);
  }
  const JitNames map = JitNames::parse(text);
  for (std::uint64_t at = 0x80; at < 0x400; ++at) {
    const auto found = expected.find(at);
    EXPECT_EQ(name_at(map, at), found == expected.end() ? "" : found->second) << at;
  }
}

TEST(JitNames, HoldsAsMuchAsItMayAndCountsTheRest) {
  constexpr ReadLimits limits{std::uint64_t{1} << 20U};
  std::string text;
  for (int line = 0; line < 20000; ++line) text += fmt::format("{:x} 8 function\n", 0x1000 + line * 8);
  const JitNames map = JitNames::parse(text, limits);
  EXPECT_EQ(map.size(), limits.count(64, 2));
  EXPECT_EQ(map.unread_lines(), 20000 - map.size());
  EXPECT_EQ(name_at(map, 0x1000), "function");
}

TEST(JitNames, NamesOfOverwrittenCodeMakeRoom) {
  std::string text;
  for (int line = 0; line < 20000; ++line) text += fmt::format("1000 8 function_{}\n", line);
  const JitNames map = JitNames::parse(text, {std::uint64_t{1} << 20U});
  EXPECT_EQ(map.unread_lines(), 0U);
  EXPECT_EQ(name_at(map, 0x1000), "function_19999");
}

TEST(JitNames, IsTheSameInPieces) {
  const std::string text = "1000 10 first\n2000 10 second\n3000 10 third\n";
  for (std::size_t size = 1; size < text.size(); ++size) {
    JitNames::Builder builder(ReadLimits{});
    const std::size_t taken = builder.add(text.substr(0, size));
    builder.add(text.substr(taken));
    const JitNames map = std::move(builder).build();
    EXPECT_EQ(map.size(), 3U);
    EXPECT_EQ(name_at(map, 0x2000), "second");
  }
}

}  // namespace
}  // namespace ddprof
