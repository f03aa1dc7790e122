#include "symbol/dwarf/debug_info.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "symbol/dwarf/dwarf_test_bytes.hpp"

namespace ddprof {
namespace {

using A = DwarfAttribute;
using F = DwarfForm;
using T = DwarfTag;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kCompileUnit = DwarfTag{0x11};

// "name@line" of each call, the innermost first; linker names in brackets.
using Told = std::map<std::uint64_t, std::vector<std::string>>;

std::string in_words(const SourceCall& call) {
  std::string text(call.name);
  if (!call.linker_name.empty()) text += "[" + std::string(call.linker_name) + "]";
  return text + "@" + std::to_string(call.line);
}

class Question {
 public:
  explicit Question(DwarfImage& image) : file_(image.file()) {}

  Told ask(std::vector<std::uint64_t> addresses) {
    auto info = DebugInfo::open(file_, others);
    if (!info.ok()) return {};
    Told told;
    dealt_with = info->find(
        addresses,
        [&](std::uint64_t address, std::span<const SourceCall> calls) {
          for (const SourceCall& call : calls) told[address].push_back(in_words(call));
          last_file = calls.back().file;
          last_start_line = calls.back().start_line;
        },
        [&] { return questions_left-- > 0; });
    problem = info->problem();
    return told;
  }

  GivenDebugFiles others;
  int questions_left = 1000;
  std::size_t dealt_with = 0;
  std::string problem;
  std::string last_file;
  std::uint32_t last_start_line = 0;

 private:
  ElfFile file_;
};

// Abbreviations of a C program: 1 the unit, 2 a function, 3 an inlined call, 4 what was inlined.
DwarfBytes c_abbreviations() {
  return DwarfBytes()
      .abbreviation(1, kCompileUnit, true, A::language, F::data1, A::low_pc, F::addr, A::high_pc, F::data4)
      .abbreviation(2, T::subprogram, true, A::name, F::string, A::decl_line, F::data1, A::low_pc, F::addr,
                    A::high_pc, F::udata)
      .abbreviation(3, T::inlined_subroutine, false, A::abstract_origin, F::ref4, A::low_pc, F::addr,
                    A::high_pc, F::addr, A::call_file, F::data1, A::call_line, F::data1)
      .abbreviation(4, T::subprogram, false, A::name, F::string, A::linkage_name, F::string)
      .u8(0);
}

DwarfBytes c_root() { return DwarfBytes().uleb(1).u8(0x0c).u64(0x1000).u32(0x1000); }

TEST(DebugInfo, TellsAFunctionAndWhatWasInlinedIntoIt) {
  DwarfBytes entries = c_root();
  const std::size_t inlined = 11 + entries.size();
  entries.uleb(4).text("inner").text("_Zinner");
  entries.uleb(2).text("outer").u8(7).u64(0x1100).uleb(0x100);
  entries.uleb(3).u32(inlined).u64(0x1110).u64(0x1120).u8(1).u8(42);
  entries.u8(0).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  const Told told = question.ask({0x1050, 0x1100, 0x110f, 0x1110, 0x111f, 0x1120, 0x11ff, 0x1200});
  EXPECT_EQ(told, (Told{{0x1100, {"outer@0"}},
                        {0x110f, {"outer@0"}},
                        {0x1110, {"inner[_Zinner]@0", "outer@42"}},
                        {0x111f, {"inner[_Zinner]@0", "outer@42"}},
                        {0x1120, {"outer@0"}},
                        {0x11ff, {"outer@0"}}}));
  EXPECT_EQ(question.last_start_line, 7U);
  EXPECT_EQ(question.dealt_with, 8U);
  EXPECT_THAT(question.problem, IsEmpty());
}

TEST(DebugInfo, FindsAFunctionWithinOneThatDoesNotCoverIt) {
  DwarfBytes entries = c_root();
  entries.uleb(2).text("around").u8(1).u64(0x1100).uleb(0x10);
  entries.uleb(2).text("nested").u8(2).u64(0x1800).uleb(0x10).u8(0);
  entries.u8(0).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  EXPECT_EQ(Question(image).ask({0x1808}), (Told{{0x1808, {"nested@0"}}}));
}

TEST(DebugInfo, DoesNotNameByFunctionsThatTheLinkerThrewAway) {
  DwarfBytes entries = c_root();
  for (const std::uint64_t tombstone :
       {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, ~std::uint64_t{1}})
    entries.uleb(2).text("gone").u8(1).u64(tombstone).uleb(0x2000).u8(0);
  entries.u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  EXPECT_THAT(Question(image).ask({0x1000, 0x1008, 0x1fff}), IsEmpty());
}

TEST(DebugInfo, StopsWhenToldToAndSaysHowFarItCame) {
  DwarfBytes info;
  for (const std::uint64_t begin : {0x1000U, 0x2000U}) {
    DwarfBytes entries = DwarfBytes().uleb(1).u8(0x0c).u64(begin).u32(0x1000);
    entries.uleb(2).text("f").u8(1).u64(begin).uleb(0x1000).u8(0).u8(0);
    info.bytes(DwarfBytes::unit_4(entries));
  }
  DwarfImage image;
  image.section(".debug_info", info).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  question.questions_left = 1;
  EXPECT_THAT(question.ask({0x1000, 0x1001, 0x2000, 0x2001}), testing::SizeIs(2));
  EXPECT_EQ(question.dealt_with, 2U);
}

TEST(DebugInfo, SaysWhichAbbreviationIsMissing) {
  DwarfBytes entries = c_root();
  entries.uleb(77);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  EXPECT_THAT(question.ask({0x1800}), IsEmpty());
  EXPECT_EQ(question.problem, "unit at 0x0: abbreviation 77 is not defined");
}

// The unit's children: `depth` functions, one within the other, that cover nothing, around one that covers
// 0x1800.
Told ask_below(std::size_t depth, std::string& problem) {
  DwarfBytes entries = c_root();
  for (std::size_t i = 0; i < depth; ++i) entries.uleb(2).text("around").u8(1).u64(0x1100).uleb(0x10);
  entries.uleb(2).text("nested").u8(2).u64(0x1800).uleb(0x10);
  for (std::size_t i = 0; i < depth + 2; ++i) entries.u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  const Told told = question.ask({0x1808});
  problem = question.problem;
  return told;
}

TEST(DebugInfo, ReadsEntriesToADepthThatNoCompilerReaches) {
  std::string problem;
  EXPECT_EQ(ask_below(4093, problem), (Told{{0x1808, {"nested@0"}}}));
  EXPECT_THAT(problem, IsEmpty());
  ask_below(4094, problem);
  EXPECT_THAT(problem, HasSubstr("cannot be read"));
}

TEST(DebugInfo, SaysWhichEntryIsCutShort) {
  DwarfBytes entries = c_root();
  const std::size_t cut = 11 + entries.size();
  entries.uleb(2).text("cut").u8(1).u32(0x1000);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  EXPECT_THAT(question.ask({0x1000}), IsEmpty());
  EXPECT_EQ(question.problem, fmt::format("unit at 0x0: the entry at {:#x} cannot be read", cut));
}

TEST(DebugInfo, GivesWhatComesBeforeATruncatedUnit) {
  DwarfBytes entries = c_root();
  entries.uleb(2).text("whole").u8(1).u64(0x1000).uleb(0x10).u8(0).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries).u32(0x1000).u16(4))
      .section(".debug_abbrev", c_abbreviations());
  Question question(image);
  EXPECT_EQ(question.ask({0x1000}), (Told{{0x1000, {"whole@0"}}}));
  EXPECT_THAT(question.problem, HasSubstr("ends outside of .debug_info"));
}

TEST(DebugInfo, EndsACycleOfOrigins) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::subprogram, false, A::abstract_origin, F::ref_udata, A::low_pc, F::addr,
                        A::high_pc, F::data2)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
  entries.uleb(2).uleb(11 + entries.size()).u64(0x1000).u16(0x10).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
  EXPECT_EQ(Question(image).ask({0x1000}), (Told{{0x1000, {"@0"}}}));
}

TEST(DebugInfo, QualifiesNamesThatHaveNoLinkerName) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::name_space, true)
          .abbreviation(3, T::class_type, true, A::name, F::string)
          .abbreviation(4, T::subprogram, false, A::name, F::string, A::decl_line, F::data1)
          .abbreviation(5, T::subprogram, false, A::specification, F::ref_addr, A::low_pc, F::addr,
                        A::high_pc, F::data2)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
  entries.uleb(2).uleb(3).text("Shape");
  const std::size_t declaration = 12 + entries.size();
  entries.uleb(4).text("area").u8(9).u8(0).u8(0);
  entries.uleb(5).u32(declaration).u64(0x1000).u16(0x10).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_5(entries)).section(".debug_abbrev", abbreviations);
  Question question(image);
  EXPECT_EQ(question.ask({0x1000}), (Told{{0x1000, {"(anonymous namespace)::Shape::area@0"}}}));
  EXPECT_EQ(question.last_start_line, 9U);
}

TEST(DebugInfo, ReadsIndexedAndImpliedForms) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::str_offsets_base, F::sec_offset, A::addr_base,
                        F::sec_offset, A::rnglists_base, F::sec_offset, A::ranges, F::rnglistx)
          .abbreviation(2, T::subprogram, false, DwarfAttribute{0x3e}, F::data16, A::name, F::indirect,
                        A::low_pc, F::addrx3, A::high_pc, F::addrx, A::decl_line, F::implicit_const, 0x2a,
                        A::linkage_name, F::strx1)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(1).u32(8).u32(8).u32(12).uleb(1);
  entries.uleb(2).u64(0).u64(0).uleb(static_cast<unsigned>(F::strx2)).u16(1).u16(2).u8(0).uleb(3).u8(0).u8(0);
  // Entry 0 of the offsets leads to the list of another unit.
  const auto lists = DwarfBytes().u32(8).u32(9).u8(0).list({3, 2, 0x80, 2, 0});
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_5(entries))
      .section(".debug_abbrev", abbreviations)
      .section(".debug_str", DwarfBytes().text("_Zf").text("f"))
      .section(".debug_str_offsets", DwarfBytes().u32(12).u32(5).u32(0).u32(4))
      .section(".debug_addr", DwarfBytes().u32(36).u16(5).u8(8).u8(0).u64(1).u64(2).u64(0x1100).u64(0x1180))
      .section(".debug_rnglists", DwarfBytes().u32(0).u16(5).u8(8).u8(0).u32(2).bytes(lists));
  Question question(image);
  EXPECT_EQ(question.ask({0x10ff, 0x1100, 0x117f, 0x1180}),
            (Told{{0x1100, {"f[_Zf]@0"}}, {0x117f, {"f[_Zf]@0"}}}));
  EXPECT_EQ(question.last_start_line, 42U);
}

TEST(DebugInfo, FollowsReferencesIntoTheSupplementaryFile) {
  const auto other_abbreviations = DwarfBytes()
                                       .abbreviation(1, DwarfTag{0x3c}, true)
                                       .abbreviation(2, T::subprogram, false, A::name, F::string)
                                       .u8(0);
  const auto other_entries = DwarfBytes().uleb(1).uleb(2).text("shared").u8(0);
  DwarfImage other;
  other.section(".debug_info", DwarfBytes::unit_4(other_entries))
      .section(".debug_abbrev", other_abbreviations)
      .section(".debug_str", DwarfBytes().text("_Zshared"));
  const ElfFile other_file = other.file();

  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::subprogram, false, A::abstract_origin, F::gnu_ref_alt, A::linkage_name,
                        F::gnu_strp_alt, A::low_pc, F::addr, A::high_pc, F::data2)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
  entries.uleb(2).u32(12).u32(0).u64(0x1000).u16(0x10).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries))
      .section(".debug_abbrev", abbreviations)
      .section(".gnu_debugaltlink", DwarfBytes().text("common.debug").list({0xab, 0xcd}));
  Question question(image);
  question.others.supplementary_file = &other_file;
  EXPECT_EQ(question.ask({0x1000}), (Told{{0x1000, {"shared[_Zshared]@0"}}}));
  EXPECT_EQ(question.others.asked, "common.debug abcd");
}

TEST(DebugInfo, KnowsTheLinkToASupplementaryFileOfDwarf5) {
  const auto asked_with = [](const DwarfBytes& link) {
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(c_root().u8(0)))
        .section(".debug_abbrev", c_abbreviations())
        .section(".debug_sup", link);
    Question question(image);
    question.ask({0x1000});
    return question.others.asked;
  };
  const auto link = [](unsigned version, unsigned is_supplementary, std::string_view path, unsigned size) {
    return DwarfBytes().u16(version).u8(is_supplementary).text(path).u8(size).list({0xab, 0xcd});
  };
  EXPECT_EQ(asked_with(link(5, 0, "common.debug", 2)), "common.debug abcd");
  EXPECT_EQ(asked_with(link(5, 0, "common.debug", 1)), "common.debug ab");
  EXPECT_EQ(asked_with(link(5, 0, "common.debug", 3)), "");  // it is cut
  EXPECT_EQ(asked_with(link(5, 1, "common.debug", 2)), "");  // this is that file
  EXPECT_EQ(asked_with(link(4, 0, "common.debug", 2)), "");
  EXPECT_EQ(asked_with(link(5, 0, "", 2)), "");
}

TEST(DebugInfo, GivesALineWithoutANameWhereNoFunctionIs) {
  const auto abbreviations = DwarfBytes()
                                 .abbreviation(1, kCompileUnit, false, A::low_pc, F::addr, A::high_pc,
                                               F::data4, A::stmt_list, F::data4, A::comp_dir, F::string)
                                 .u8(0);
  const auto header = DwarfBytes()
                          .list({1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1})
                          .u8(0)
                          .text("start.S")
                          .list({0, 0, 0})
                          .u8(0);
  const auto program =
      DwarfBytes().list({0, 9, 2}).u64(0x1000).list({3, 29, 1, 2, 0x10, 0, 1, 1});  // line 30 at 0x1000
  DwarfImage image;
  image
      .section(".debug_info",
               DwarfBytes::unit_4(DwarfBytes().uleb(1).u64(0x1000).u32(0x10).u32(0).text("/work")))
      .section(".debug_abbrev", abbreviations)
      .section(".debug_line",
               DwarfBytes().u16(2).u32(header.size()).bytes(header).bytes(program).with_length());
  Question question(image);
  EXPECT_EQ(question.ask({0x1008}), (Told{{0x1008, {"@30"}}}));
  EXPECT_EQ(question.last_file, "/work/start.S");
}

// A program of one unit with these entries, in the abbreviations of a C program.
Told ask_c_program(const DwarfBytes& entries, std::vector<std::uint64_t> addresses,
                   std::string* problem = nullptr) {
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  const Told told = question.ask(std::move(addresses));
  if (problem != nullptr) *problem = question.problem;
  return told;
}

TEST(DebugInfo, AFunctionHasItsFirstAddressAndNotTheOneBehindIt) {
  DwarfBytes entries = c_root();
  entries.uleb(2).text("f").u8(1).u64(0x1100).uleb(0x10).u8(0).u8(0);
  EXPECT_EQ(ask_c_program(entries, {0x1100}), (Told{{0x1100, {"f@0"}}}));
  EXPECT_EQ(ask_c_program(entries, {0x110f}), (Told{{0x110f, {"f@0"}}}));
  EXPECT_THAT(ask_c_program(entries, {0x1110}), IsEmpty());
}

TEST(DebugInfo, AFunctionWithinAnotherIsNoCallOfIt) {
  DwarfBytes entries = c_root();
  entries.uleb(2).text("around").u8(1).u64(0x1100).uleb(0x100);
  entries.uleb(2).text("nested").u8(2).u64(0x1120).uleb(0x10).u8(0);
  entries.u8(0).u8(0);
  EXPECT_EQ(ask_c_program(entries, {0x1110, 0x1120}), (Told{{0x1110, {"around@0"}}, {0x1120, {"nested@0"}}}));
}

// DWARF 2 tells the cold part of a function as a function of its own, after the calls that were inlined
// there.
TEST(DebugInfo, AColdPartDoesNotHideTheCallsThatWereInlinedIntoIt) {
  DwarfBytes entries = c_root();
  const std::size_t inlined = 11 + entries.size();
  entries.uleb(4).text("inner").text("");
  entries.uleb(2).text("outer").u8(7).u64(0x1100).uleb(0x100);
  entries.uleb(3).u32(inlined).u64(0x1800).u64(0x1810).u8(1).u8(42);
  entries.u8(0);
  entries.uleb(2).text("cold").u8(7).u64(0x1800).uleb(0x20).u8(0);
  entries.u8(0);
  EXPECT_EQ(ask_c_program(entries, {0x1100, 0x1808, 0x1818}),
            (Told{{0x1100, {"outer@0"}}, {0x1808, {"inner@0", "outer@42"}}, {0x1818, {"cold@0"}}}));
}

// Entries that are of no interest, with and without the place of the next one: 5 to 7 are a type, its members
// and theirs, 8 says where it ends.
TEST(DebugInfo, PassesOverEntriesOfOtherKindsAndWhatIsInThem) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::subprogram, false, A::name, F::string, A::low_pc, F::addr, A::high_pc, F::udata)
          .abbreviation(5, DwarfTag{0x04}, true, A::name, F::string)
          .abbreviation(6, DwarfTag{0x28}, true, A::name, F::string)
          .abbreviation(7, DwarfTag{0x28}, false, A::name, F::string)
          .abbreviation(8, DwarfTag{0x04}, true, A::name, F::string, A::sibling, F::ref4)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
  entries.uleb(5).text("type").uleb(6).text("member").uleb(7).text("x").uleb(7).text("y").u8(0);
  entries.uleb(7).text("z").u8(0);
  const std::size_t next = 11 + entries.size() + 1 + 7 + 4 + 3;
  entries.uleb(8).text("jumped").u32(next).list({0x7f, 0x7f, 0x7f});  // of no abbreviation
  entries.uleb(2).text("f").u64(0x1100).uleb(0x10).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
  Question question(image);
  EXPECT_EQ(question.ask({0x1100}), (Told{{0x1100, {"f@0"}}}));
  EXPECT_THAT(question.problem, IsEmpty());
}

TEST(DebugInfo, AbbreviationsHaveNumbersInAnyOrder) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(70, T::subprogram, false, A::name, F::string, A::low_pc, F::addr, A::high_pc,
                        F::udata)
          .abbreviation(2, T::name_space, true, A::name, F::string)
          .abbreviation(9, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(1, T::class_type, true, A::name, F::string)
          .u8(0);
  DwarfBytes entries = DwarfBytes().uleb(9).u64(0x1000).u32(0x1000);
  entries.uleb(2).text("space").uleb(1).text("Class");
  entries.uleb(70).text("f").u64(0x1100).uleb(0x10).u8(0).u8(0).u8(0);
  DwarfImage image;
  image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
  Question question(image);
  EXPECT_EQ(question.ask({0x1100}), (Told{{0x1100, {"space::Class::f@0"}}}));
  EXPECT_THAT(question.problem, IsEmpty());
}

// Functions before, within, between and behind namespaces.
TEST(DebugInfo, QualifiesNamesByTheScopesAroundThem) {
  const auto names_in = [](unsigned language) {
    const auto abbreviations = DwarfBytes()
                                   .abbreviation(1, kCompileUnit, true, A::language, F::data2, A::low_pc,
                                                 F::addr, A::high_pc, F::data4)
                                   .abbreviation(2, T::name_space, true, A::name, F::string)
                                   .abbreviation(3, T::subprogram, true, A::name, F::string, A::low_pc,
                                                 F::addr, A::high_pc, F::udata)
                                   .abbreviation(4, T::lexical_block, true)
                                   .u8(0);
    DwarfBytes entries = DwarfBytes().uleb(1).u16(language).u64(0x1000).u32(0x1000);
    const auto function = [&](const char* name, std::uint64_t address) {
      entries.uleb(3).text(name).u64(address).uleb(0x10).uleb(4).u8(0).u8(0);
    };
    function("f", 0x1100);
    entries.uleb(2).text("a");
    function("g", 0x1200);
    entries.uleb(2).text("b");
    function("h", 0x1300);
    entries.u8(0);
    function("i", 0x1400);
    entries.u8(0);
    function("j", 0x1500);
    entries.uleb(2).text("c");
    function("k", 0x1600);
    entries.u8(0).u8(0);
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
    std::vector<std::string> names;
    for (const auto& [address, calls] : Question(image).ask({0x1100, 0x1200, 0x1300, 0x1400, 0x1500, 0x1600}))
      names.push_back(calls.front().substr(0, calls.front().find('@')));
    return names;
  };
  EXPECT_THAT(names_in(0x04), testing::ElementsAre("f", "a::g", "a::b::h", "a::i", "j", "c::k"));  // C++
  for (const unsigned language : {0x01U, 0x02U, 0x0cU, 0x16U, 0x1dU, 0x2cU, 0x8001U})
    EXPECT_THAT(names_in(language), testing::ElementsAre("f", "g", "h", "i", "j", "k"));
}

TEST(DebugInfo, ScopesThatNoProgramHasAreCutShort) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::name_space, true, A::name, F::string)
          .abbreviation(3, T::subprogram, false, A::name, F::string, A::low_pc, F::addr, A::high_pc, F::udata)
          .u8(0);
  const auto name_below = [&](int scopes, const std::string& scope) {
    DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
    for (int i = 0; i < scopes; ++i) entries.uleb(2).text(scope);
    entries.uleb(3).text("f").u64(0x1100).uleb(0x10);
    for (int i = 0; i < scopes + 1; ++i) entries.u8(0);
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
    return Question(image).ask({0x1100})[0x1100].at(0);
  };
  EXPECT_EQ(name_below(32, "s").size(), 32 * 3 + 3U);
  EXPECT_EQ(name_below(33, "s").size(), 32 * 3 + 3U);
  EXPECT_EQ(name_below(1, std::string(4096, 's')).size(), 4096 + 2 + 3U);
  EXPECT_EQ(name_below(1, std::string(4097, 's')), "f@0");
}

TEST(DebugInfo, FollowsSixteenOrigins) {
  const auto abbreviations =
      DwarfBytes()
          .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
          .abbreviation(2, T::subprogram, false, A::abstract_origin, F::ref4)
          .abbreviation(3, T::subprogram, false, A::name, F::string)
          .abbreviation(4, T::subprogram, false, A::abstract_origin, F::ref4, A::low_pc, F::addr, A::high_pc,
                        F::udata)
          .u8(0);
  const auto name_after = [&](std::size_t origins) {
    DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
    std::size_t last = 11 + entries.size();
    entries.uleb(3).text("origin");
    for (std::size_t i = 1; i < origins; ++i) {
      const std::size_t above = std::exchange(last, 11 + entries.size());
      entries.uleb(2).u32(above);
    }
    entries.uleb(4).u32(last).u64(0x1100).uleb(0x10).u8(0);
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
    return Question(image).ask({0x1100})[0x1100].at(0);
  };
  EXPECT_EQ(name_after(1), "origin@0");
  EXPECT_EQ(name_after(16), "origin@0");
  EXPECT_EQ(name_after(17), "@0");
}

// An entry with one attribute of each form, whose values mean nothing.
TEST(DebugInfo, ReadsPastEveryForm) {
  struct Shape {
    F form;
    DwarfBytes bytes;
  };
  const auto zeros = [](std::size_t count) {
    DwarfBytes bytes;
    for (std::size_t i = 0; i < count; ++i) bytes.u8(0x81);
    return bytes;
  };
  std::vector<Shape> shapes;
  for (const F form : {F::data1, F::flag, F::ref1, F::strx1, F::addrx1}) shapes.push_back({form, zeros(1)});
  for (const F form : {F::data2, F::ref2, F::strx2, F::addrx2}) shapes.push_back({form, zeros(2)});
  for (const F form : {F::strx3, F::addrx3}) shapes.push_back({form, zeros(3)});
  for (const F form : {F::data4, F::ref4, F::ref_sup4, F::strx4, F::addrx4, F::ref_addr, F::sec_offset,
                       F::strp, F::line_strp, F::strp_sup, F::gnu_ref_alt, F::gnu_strp_alt})
    shapes.push_back({form, zeros(4)});
  for (const F form : {F::data8, F::ref8, F::ref_sup8, F::ref_sig8, F::addr})
    shapes.push_back({form, zeros(8)});
  shapes.push_back({F::data16, zeros(16)});
  shapes.push_back({F::flag_present, {}});
  for (const F form : {F::udata, F::sdata, F::ref_udata, F::strx, F::addrx, F::loclistx, F::rnglistx,
                       F::gnu_addr_index, F::gnu_str_index})
    shapes.push_back({form, DwarfBytes().list({0x81, 0x81, 1})});
  shapes.push_back({F::string, DwarfBytes().text("text")});
  shapes.push_back({F::block1, DwarfBytes().u8(3).bytes(zeros(3))});
  shapes.push_back({F::block2, DwarfBytes().u16(3).bytes(zeros(3))});
  shapes.push_back({F::block4, DwarfBytes().u32(3).bytes(zeros(3))});
  shapes.push_back({F::block, DwarfBytes().uleb(130).bytes(zeros(130))});
  shapes.push_back({F::exprloc, DwarfBytes().uleb(130).bytes(zeros(130))});
  shapes.push_back({F::indirect, DwarfBytes().uleb(static_cast<unsigned>(F::data2)).u16(1)});

  constexpr A kUnknown{0x2fff};
  for (const Shape& shape : shapes) {
    const auto abbreviations =
        DwarfBytes()
            .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
            .abbreviation(2, DwarfTag{0x34}, false, kUnknown, shape.form, kUnknown, F::data1)  // passed over
            .abbreviation(3, T::subprogram, false, kUnknown, shape.form, A::name, F::string, A::low_pc,
                          F::addr, A::high_pc, F::udata)
            .u8(0);
    DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
    entries.uleb(2).bytes(shape.bytes).u8(0x7f);
    entries.uleb(3).bytes(shape.bytes).text("f").u64(0x1100).uleb(0x10).u8(0);
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
    Question question(image);
    EXPECT_EQ(question.ask({0x1100}), (Told{{0x1100, {"f@0"}}})) << static_cast<unsigned>(shape.form);
    EXPECT_THAT(question.problem, IsEmpty());
  }
}

TEST(DebugInfo, ReadsNoFormThatIsNone) {
  for (const F form : {F{0x2f}, F::indirect}) {
    const auto abbreviations =
        DwarfBytes()
            .abbreviation(1, kCompileUnit, true, A::low_pc, F::addr, A::high_pc, F::data4)
            .abbreviation(3, T::subprogram, false, A{0x2fff}, form, A::name, F::string, A::low_pc, F::addr,
                          A::high_pc, F::udata)
            .u8(0);
    DwarfBytes entries = DwarfBytes().uleb(1).u64(0x1000).u32(0x1000);
    // An indirect form may say that it is indirect again, or that its value is in the abbreviation.
    entries.uleb(3).uleb(static_cast<unsigned>(F::implicit_const)).text("f").u64(0x1100).uleb(0x10).u8(0);
    DwarfImage image;
    image.section(".debug_info", DwarfBytes::unit_4(entries)).section(".debug_abbrev", abbreviations);
    Question question(image);
    EXPECT_THAT(question.ask({0x1100}), IsEmpty());
    EXPECT_THAT(question.problem, HasSubstr("cannot be read"));
  }
}

TEST(DebugInfo, UnitsMayHaveZerosBetweenThem) {
  DwarfBytes info;
  for (const std::uint64_t begin : {0x1000U, 0x2000U}) {
    DwarfBytes entries = DwarfBytes().uleb(1).u8(0x0c).u64(begin).u32(0x1000);
    entries.uleb(2).text("f").u8(1).u64(begin).uleb(0x1000).u8(0).u8(0);
    info.bytes(DwarfBytes::unit_4(entries)).u32(0);
  }
  DwarfImage image;
  image.section(".debug_info", info).section(".debug_abbrev", c_abbreviations());
  Question question(image);
  EXPECT_EQ(question.ask({0x1000, 0x2000}), (Told{{0x1000, {"f@0"}}, {0x2000, {"f@0"}}}));
  EXPECT_THAT(question.problem, IsEmpty());
}

// A program whose functions are in another file, and that file.
class SplitProgram {
 public:
  static constexpr std::uint64_t kId = 0x1122334455667701;

  explicit SplitProgram(std::uint64_t id_there = kId, bool is_version_5 = true)
      : question_(add_skeleton(skeleton_, is_version_5)),
        there_file_(add_rest(there_, id_there, is_version_5)) {}

  Question& question() { return question_; }
  [[nodiscard]] const ElfFile& there() const { return there_file_; }

 private:
  static DwarfImage& add_skeleton(DwarfImage& image, bool is_version_5) {
    const auto abbreviations =
        is_version_5
            ? DwarfBytes().abbreviation(1, DwarfTag{0x4a}, false, A::dwo_name, F::string, A::comp_dir,
                                        F::string, A::low_pc, F::addr, A::high_pc, F::data4)
            : DwarfBytes().abbreviation(1, kCompileUnit, false, A::gnu_dwo_name, F::string, A::comp_dir,
                                        F::string, A::low_pc, F::addr, A::high_pc, F::data4, A::gnu_dwo_id,
                                        F::data8);
    DwarfBytes root = DwarfBytes().uleb(1).text("f.dwo").text("/work").u64(0x1000).u32(0x1000);
    if (!is_version_5) root.u64(kId);
    const DwarfBytes unit = is_version_5
                                ? DwarfBytes().u16(5).u8(4).u8(8).u32(0).u64(kId).bytes(root).with_length()
                                : DwarfBytes::unit_4(root);
    return image.section(".debug_info", unit).section(".debug_abbrev", DwarfBytes(abbreviations).u8(0));
  }
  static ElfFile add_rest(DwarfImage& image, std::uint64_t id, bool is_version_5) {
    DwarfBytes abbreviations;
    if (is_version_5)
      abbreviations.abbreviation(1, kCompileUnit, true);
    else
      abbreviations.abbreviation(1, kCompileUnit, true, A::gnu_dwo_id, F::data8);
    abbreviations
        .abbreviation(2, T::subprogram, false, A::name, F::string, A::low_pc, F::addr, A::high_pc, F::udata)
        .u8(0);
    DwarfBytes entries = DwarfBytes().uleb(1);
    if (!is_version_5) entries.u64(id);
    entries.uleb(2).text("f").u64(0x1100).uleb(0x10).u8(0);
    const DwarfBytes unit = is_version_5
                                ? DwarfBytes().u16(5).u8(5).u8(8).u32(0).u64(id).bytes(entries).with_length()
                                : DwarfBytes::unit_4(entries);
    // As the index of a package has it: one unit in the second of two slots, its parts at the beginning of
    // theirs.
    const auto index = DwarfBytes()
                           .u32(5)
                           .u32(2)
                           .u32(1)
                           .u32(2)
                           .u64(0)
                           .u64(id)
                           .u32(0)
                           .u32(1)
                           .u32(1)
                           .u32(3)
                           .u32(0)
                           .u32(0)
                           .u32(0)
                           .u32(0);
    image.section(".debug_info.dwo", unit).section(".debug_abbrev.dwo", abbreviations);
    return image.section(".debug_cu_index", index).file();
  }

  DwarfImage skeleton_, there_;
  Question question_;
  ElfFile there_file_;
};

TEST(DebugInfo, FindsTheRestOfAUnitInTheFileThatItNames) {
  for (const bool is_version_5 : {true, false}) {
    SplitProgram program(SplitProgram::kId, is_version_5);
    program.question().others.split_file = &program.there();
    EXPECT_EQ(program.question().ask({0x1100, 0x1110}), (Told{{0x1100, {"f@0"}}})) << is_version_5;
    EXPECT_EQ(program.question().others.asked, "/work f.dwo");
    EXPECT_THAT(program.question().problem, IsEmpty());
  }
}

TEST(DebugInfo, FindsTheRestOfAUnitInAPackage) {
  SplitProgram program;
  program.question().others.package_file = &program.there();
  EXPECT_EQ(program.question().ask({0x1100}), (Told{{0x1100, {"f@0"}}}));
  EXPECT_EQ(program.question().others.asked, "") << "no other file is needed";
}

TEST(DebugInfo, SaysWhereTheRestOfAUnitIsMissing) {
  SplitProgram alone;
  EXPECT_THAT(alone.question().ask({0x1100}), IsEmpty());
  EXPECT_EQ(alone.question().problem, "unit at 0x0: f.dwo is not to be found");
  for (const bool is_version_5 : {true, false}) {
    SplitProgram other(SplitProgram::kId + 2, is_version_5);
    other.question().others.split_file = other.question().others.package_file = &other.there();
    EXPECT_THAT(other.question().ask({0x1100}), IsEmpty());
    EXPECT_EQ(other.question().problem, "unit at 0x0: f.dwo is of another build");
  }
}

TEST(DebugInfo, IsNotThereWhenThereAreNoSections) {
  DwarfImage image;
  const ElfFile file = image.file();
  GivenDebugFiles others;
  const auto info = DebugInfo::open(file, others);
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace ddprof
