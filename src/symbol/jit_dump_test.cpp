#include "symbol/jit_dump.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "symbol/jit_dump_bytes.hpp"

namespace ddprof {
namespace {

constexpr const char* kSame = "\xff";

JitDump read_whole(const JitDumpBytes& file) {
  JitDump dump;
  EXPECT_TRUE(dump.read(file.bytes(), file.size()).ok());
  EXPECT_EQ(dump.offset(), file.size());
  return dump;
}

// "name file:line"; empty when no code is known there.
std::string code_at(const JitDump& dump, std::uint64_t address) {
  std::string text;
  const bool is_found = dump.find(address, [&](const SourceCall& call) {
    text = call.name;
    if (call.line != 0) text += fmt::format(" {}:{}", call.file, call.line);
  });
  EXPECT_EQ(is_found, !text.empty());
  return text;
}

TEST(JitDump, KnowsCodeThatWasLoaded) {
  const JitDump dump = read_whole(JitDumpBytes().load(0x1000, "first", 0x20, 1).load(0x2000, "second", 8, 2));
  EXPECT_EQ(code_at(dump, 0xfff), "");
  EXPECT_EQ(code_at(dump, 0x1000), "first");
  EXPECT_EQ(code_at(dump, 0x101f), "first");
  EXPECT_EQ(code_at(dump, 0x1020), "");
  EXPECT_EQ(code_at(dump, 0x2007), "second");
  EXPECT_EQ(dump.size(), 2U);
}

TEST(JitDump, LetsTheLatestCodeWinAndForgetsWhatIsOverwritten) {
  JitDumpBytes file;
  file.load(0x1000, "old", 0x30, 1).load(0x1010, "new", 0x10, 2);
  const JitDump both = read_whole(file);
  EXPECT_EQ(code_at(both, 0x100f), "old");
  EXPECT_EQ(code_at(both, 0x1010), "new");
  EXPECT_EQ(code_at(both, 0x1020), "old");
  const JitDump last = read_whole(file.load(0xf00, "large", 0x1000, 3));
  EXPECT_EQ(code_at(last, 0x1010), "large");
  EXPECT_EQ(last.size(), 1U);
}

TEST(JitDump, KnowsMovedCodeAtBothPlacesUntilTheOldOneIsOverwritten) {
  JitDumpBytes file;
  file.lines(0x1000, {{0x1000, 1, "a.js"}, {0x1008, 2, kSame}}).load(0x1000, "moving", 0x10, 1);
  file.move(0x1000, 0x5000, 0x10, 1);
  const JitDump moved = read_whole(file);
  EXPECT_EQ(code_at(moved, 0x1009), "moving a.js:2");
  EXPECT_EQ(code_at(moved, 0x5007), "moving a.js:1");
  EXPECT_EQ(code_at(moved, 0x5008), "moving a.js:2");
  const JitDump overwritten = read_whole(file.load(0x1000, "other", 0x10, 2).move(0x5000, 0x6000, 0x10, 1));
  EXPECT_EQ(code_at(overwritten, 0x1009), "other");
  EXPECT_EQ(code_at(overwritten, 0x6009), "moving a.js:2");
}

TEST(JitDump, MovesCodeOntoItself) {
  const JitDump dump =
      read_whole(JitDumpBytes().load(0x1000, "moving", 0x10, 1).move(0x1000, 0x1008, 0x10, 1));
  EXPECT_EQ(code_at(dump, 0x1007), "moving");
  EXPECT_EQ(code_at(dump, 0x1017), "moving");
  EXPECT_EQ(dump.size(), 1U);
  EXPECT_EQ(read_whole(JitDumpBytes().load(0x1000, "stays", 0x10, 1).move(0x1000, 0x1000, 0x10, 1)).size(),
            1U);
}

TEST(JitDump, FindsCodeToMoveByItsNumberOrByItsOldPlace) {
  // Its old place belongs to another one meanwhile; a part is left.
  JitDumpBytes file;
  file.load(0x1000, "a", 0x20, 1).load(0x1000, "b", 0x10, 2).move(0x1000, 0x5000, 0x20, 1);
  EXPECT_EQ(code_at(read_whole(file), 0x5000), "a");
  // Numbers that are all the same say nothing.
  const JitDump dump = read_whole(
      JitDumpBytes().load(0x1000, "a", 0x10, 0).load(0x2000, "b", 0x10, 0).move(0x1000, 0x3000, 0x10, 0));
  EXPECT_EQ(code_at(dump, 0x3000), "a");
}

TEST(JitDump, ANumberBelongsToTheLastCodeThatHasIt) {
  JitDumpBytes file;
  file.load(0x1000, "first", 0x10, 1).load(0x2000, "second", 0x10, 1);
  file.load(0x1000, "over_first", 0x10, 2);  // which is gone now
  file.load(0x2000, "over_second", 8, 3);    // of which a part is left
  file.move(0x2000, 0x5000, 0x10, 1);
  EXPECT_EQ(code_at(read_whole(file), 0x5000), "second");
}

TEST(JitDump, GivesLinesToTheCodeThatFollowsThemOnly) {
  JitDumpBytes file;
  file.lines(0x1000, {{0x1004, 7, "a.js"}, {0x1000, 5, "b.js"}, {0x1002, 6, kSame}})
      .load(0x1000, "code", 0x10, 1);
  file.load(0x1000 + 0x10, "next", 0x10, 2);
  file.lines(0x9000, {{0x9000, 1, "a.js"}}).load(0x3000, "elsewhere", 0x10, 3);
  const JitDump dump = read_whole(file);
  EXPECT_EQ(code_at(dump, 0x1000), "code b.js:5");
  EXPECT_EQ(code_at(dump, 0x1003), "code b.js:6");
  EXPECT_EQ(code_at(dump, 0x100f), "code a.js:7");
  EXPECT_EQ(code_at(dump, 0x1010), "next");
  EXPECT_EQ(code_at(dump, 0x3000), "elsewhere");
}

TEST(JitDump, CorrectsTheLinesOfV8) {
  JitDumpBytes file(0x4A695444, 1, 0xdeadbeef);
  file.lines(0x1000, {{0x1040, 1, "a.js"}, {0x1048, 2, kSame}}).load(0x1000, "code", 0x10, 1);
  EXPECT_EQ(code_at(read_whole(file), 0x1007), "code a.js:1");
  EXPECT_EQ(code_at(read_whole(file), 0x1008), "code a.js:2");
}

TEST(JitDump, KeepsUnwindingInformationInBothOrders) {
  const std::string frames = std::string("\x08\0\0\0\0\0\0\0cccc\0\0\0\0", 16);
  const std::string header = std::string("\x01\x1b\x03\x3bhhhh", 8);
  JitDumpBytes file;
  file.unwinding(frames + header, 8).load(0x1000, "as_v8", 0xf, 1);
  file.unwinding(header + frames, 8).load(0x2000, "as_specified", 0x10, 2);
  file.load(0x3000, "without", 0x10, 3).move(0x1000, 0x5000, 0xf, 1);
  std::vector<JitDump::Unwinding> found;
  std::vector<std::string> texts;
  const JitDump dump = read_whole(file);
  dump.for_each_unwinding([&](const JitDump::Unwinding& unwinding) {
    found.push_back(unwinding);
    texts.emplace_back(reinterpret_cast<const char*>(unwinding.eh_frame.data()), unwinding.eh_frame.size());
  });
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(texts, std::vector<std::string>(3, frames));
  EXPECT_EQ(found[0].begin, 0x1000U);
  EXPECT_EQ(found[0].end, 0x100fU);
  EXPECT_EQ(found[0].vaddr, 0x1010U);
  EXPECT_EQ(found[1].vaddr, 0x2018U);
  EXPECT_EQ(found[2].begin, 0x5000U);
  EXPECT_EQ(found[2].moved_by, 0x4000U);
  EXPECT_EQ(found[2].vaddr, 0x1010U);
}

JitDumpBytes mixed_file(std::vector<std::size_t>& ends) {
  JitDumpBytes file;
  ends.push_back(file.size());
  const auto mark = [&](JitDumpBytes& written) { ends.push_back(written.size()); };
  mark(file.load(0x1000, "one", 0x10, 1));
  mark(file.record(77, "unknown"));
  mark(file.lines(0x2000, {{0x2000, 1, "a.js"}, {0x2001, 2, kSame}}));
  mark(file.unwinding("0123456789", 4));
  mark(file.load(0x2000, "two", 0x10, 2));
  mark(file.move(0x1000, 0x3000, 0x10, 1));
  mark(file.close());
  return file;
}

TEST(JitDump, TakesTheCompleteRecordsOfAFileThatIsCutAnywhere) {
  std::vector<std::size_t> ends;
  const JitDumpBytes file = mixed_file(ends);
  for (std::size_t size = 0; size <= file.size(); ++size) {
    JitDump dump;
    ASSERT_TRUE(dump.read(file.bytes().first(size), size).ok()) << size;
    const auto after = std::upper_bound(ends.begin(), ends.end(), size);
    EXPECT_EQ(dump.offset(), after == ends.begin() ? 0 : *std::prev(after)) << size;
    EXPECT_EQ(code_at(dump, 0x1000), size >= ends[1] ? "one" : "") << size;
    EXPECT_EQ(code_at(dump, 0x2001), size >= ends[5] ? "two a.js:2" : "") << size;
    EXPECT_EQ(code_at(dump, 0x3000), size >= ends[6] ? "one" : "") << size;
    EXPECT_EQ(dump.is_closed(), size == file.size()) << size;
    EXPECT_EQ(dump.skipped_records(), 0U) << size;
    // What is appended later is read from there.
    ASSERT_TRUE(dump.read(file.bytes().subspan(dump.offset()), file.size()).ok());
    EXPECT_EQ(dump.offset(), file.size()) << size;
    EXPECT_EQ(code_at(dump, 0x2001), "two a.js:2") << size;
    EXPECT_EQ(code_at(dump, 0x3000), "one") << size;
  }
}

TEST(JitDump, WaitsForAHeaderThatIsLongerThanWhatWasRead) {
  JitDumpBytes file;
  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  bytes[8] = std::byte{100};  // the size that it says it has
  JitDump dump;
  ASSERT_TRUE(dump.read(bytes, 200).ok());
  EXPECT_EQ(dump.offset(), 100U);
  EXPECT_EQ(dump.size(), 0U);
}

TEST(JitDump, NeedsNoMoreThanTheFirstBytesOfLargeCode) {
  JitDumpBytes file;
  file.load(0x1000, "large", 3 * JitDump::kMaxRecordBytes, 1).load(0x9000000, "behind", 0x10, 2);
  JitDump dump;
  std::uint64_t read_bytes = 0;
  for (std::uint64_t before = 1; before != dump.offset();) {
    before = dump.offset();
    const auto window = file.bytes().subspan(before).first(
        std::min<std::size_t>(JitDump::kMaxRecordBytes, file.size() - before));
    read_bytes += window.size();
    ASSERT_TRUE(dump.read(window, file.size()).ok());
  }
  EXPECT_EQ(dump.offset(), file.size());
  EXPECT_EQ(code_at(dump, 0x1000 + 2 * JitDump::kMaxRecordBytes), "large");
  EXPECT_EQ(code_at(dump, 0x9000000), "behind");
  EXPECT_LE(read_bytes, 2 * JitDump::kMaxRecordBytes + 1000);
}

TEST(JitDump, RefusesWhatIsNoneOrOfAnotherMachineOrVersion) {
  const auto error_of = [](const JitDumpBytes& file) {
    JitDump dump;
    const auto result = dump.read(file.bytes(), file.size());
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_EQ(error_of(JitDumpBytes(0x12345678)), "read jitdump: it does not begin like one");
  EXPECT_EQ(error_of(JitDumpBytes(0x4454694A)), "read jitdump: it was written in another byte order");
  EXPECT_EQ(error_of(JitDumpBytes(0x4A695444, 3)), "read jitdump: version 3 is unknown");
}

TEST(JitDump, KeepsWhatStoodBeforeARecordThatCannotBe) {
  JitDumpBytes file;
  file.load(0x1000, "good", 0x10, 1);
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  text.append("\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0more", 20);
  JitDump dump;
  EXPECT_FALSE(dump.read(std::as_bytes(std::span(text)), text.size()).ok());
  EXPECT_EQ(code_at(dump, 0x1000), "good");
}

TEST(JitDump, WaitsWhereRoomWasMadeButNotFilled) {
  JitDumpBytes file;
  file.load(0x1000, "good", 0x10, 1);
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  text.append(4096, '\0');
  JitDump dump;
  EXPECT_TRUE(dump.read(std::as_bytes(std::span(text)), text.size()).ok());
  EXPECT_EQ(dump.offset(), file.size());
}

TEST(JitDump, CountsRecordsThatItCannotRead) {
  JitDumpBytes file;
  file.record(0, "short").record(1, "short").record(2, "short").record(4, "short");
  file.load(0xfffffffffffffff0, "wraps", 0x20, 1).load(0x1000, "empty", 0, 2).move(0x9000, 0x9100, 0x10, 9);
  EXPECT_EQ(read_whole(file).skipped_records(), 7U);
}

TEST(JitDump, CountsLinesThatBreakOff) {
  std::string lines;
  const auto number = [&](std::uint64_t value, std::size_t bytes) {
    lines.append(reinterpret_cast<const char*>(&value), bytes);
  };
  number(0x1000, 8), number(2, 8);  // of code at 0x1000, two
  number(0x1000, 8), number(1, 4), number(0, 4);
  lines.append("a.js\0", 5);
  for (const std::size_t rest : {0U, 8U, 15U, 16U}) {  // of the second
    JitDumpBytes file;
    file.record(2, lines + std::string(rest, 'x'));
    EXPECT_EQ(read_whole(file).skipped_records(), 1U) << rest;
  }
}

TEST(JitDump, BoundsNames) {
  const JitDump dump = read_whole(JitDumpBytes().load(0x1000, std::string(5000, 'x'), 0x10, 1));
  EXPECT_EQ(code_at(dump, 0x1000).size(), JitDump::kMaxTextBytes);
}

TEST(JitDump, ReturnsTheMemoryOfOverwrittenCode) {
  JitDumpBytes file;
  for (std::uint64_t round = 0; round < 1000; ++round)
    file.lines(0x1000, {{0x1000, 1, "a.js"}}).load(0x1000, "again", 0x10, round);
  const JitDump dump = read_whole(file);
  EXPECT_EQ(dump.size(), 1U);
  EXPECT_LT(dump.memory_bytes(), 1000U);
}

TEST(JitDump, AgreesWithAnArrayOfBytes) {
  std::mt19937 random(4);  // NOLINT: repeatable
  struct Known {
    std::uint64_t start, size, index;
    std::string name;
  };
  std::map<std::uint64_t, std::string> expected;
  std::map<std::uint64_t, Known> at_start;  // whole pieces by where they were put last
  JitDumpBytes file;
  for (std::uint64_t turn = 0; turn < 2000; ++turn) {
    Known code{0x100 + random() % 400, 1 + random() % 60, turn, fmt::format("f{}", turn)};
    const bool is_move = turn % 3 == 2 && !at_start.empty();
    if (is_move) {
      const Known old = std::next(at_start.begin(), static_cast<long>(random() % at_start.size()))->second;
      file.move(old.start, code.start, old.size, old.index);
      code = {code.start, old.size, old.index, old.name};
    } else {
      file.load(code.start, code.name, code.size, code.index);
    }
    for (std::uint64_t at = code.start; at < code.start + code.size; ++at) expected[at] = code.name;
    at_start.clear();  // moves only what was put last, so that it is surely known
    at_start.insert_or_assign(code.start, code);
  }
  const JitDump dump = read_whole(file);
  EXPECT_EQ(dump.skipped_records(), 0U);
  for (std::uint64_t at = 0x80; at < 0x400; ++at) {
    const auto found = expected.find(at);
    EXPECT_EQ(code_at(dump, at), found == expected.end() ? "" : found->second) << at;
  }
}

TEST(JitDump, HoldsAsMuchAsItMay) {
  JitDumpBytes file;
  for (std::uint64_t number = 0; number < 10000; ++number)
    file.load(0x1000 + number * 16, "function", 16, number);
  constexpr ReadLimits limits{std::uint64_t{1} << 20U};
  JitDump dump(limits);
  EXPECT_TRUE(dump.read(file.bytes(), file.bytes().size()).ok());
  EXPECT_LE(dump.memory_bytes(), limits.bytes());
  EXPECT_GT(dump.size(), 500U);
  EXPECT_GT(dump.skipped_records(), 0U);
}

}  // namespace
}  // namespace ddprof
