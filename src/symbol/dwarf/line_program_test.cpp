#include "symbol/dwarf/line_program.hpp"

#include <gtest/gtest.h>

#include "symbol/dwarf/dwarf_file.hpp"
#include "symbol/dwarf/dwarf_test_bytes.hpp"

namespace ddprof {
namespace {

using A = DwarfAttribute;
using F = DwarfForm;

constexpr std::initializer_list<unsigned> kOpcodeLengths = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
constexpr unsigned kSetAddress[] = {0, 9, 2};

// A unit whose only content is a line program, in the folder /work.
class LineScene {
 public:
  explicit LineScene(const DwarfBytes& lines, const DwarfBytes& line_strings = DwarfBytes().u8(0)) {
    image_
        .section(".debug_abbrev", DwarfBytes()
                                      .abbreviation(1, DwarfTag{0x11}, false, A::stmt_list, F::sec_offset,
                                                    A::comp_dir, F::string)
                                      .u8(0))
        .section(".debug_info", DwarfBytes::unit_4(DwarfBytes().uleb(1).u32(0).text("/work")))
        .section(".debug_line", lines)
        .section(".debug_line_str", line_strings);
    elf_ = image_.file();
    file_.emplace(*elf_, DwarfSections::Kind::whole, problem_, budget_);
    unit_ = file_->unit_at(0);
    program_ = LineProgram::parse(*unit_);
  }
  std::vector<FoundLine> find(const std::vector<std::uint64_t>& addresses) {
    return find_lines(*program_, addresses, CodeBounds::of(*elf_), budget_);
  }
  [[nodiscard]] const std::optional<LineProgram>& program() const { return program_; }
  [[nodiscard]] std::string_view problem() const { return problem_.text(); }

 private:
  DwarfImage image_;
  std::optional<ElfFile> elf_;
  DwarfProblem problem_;
  WorkBudget budget_;
  std::optional<DwarfFile> file_;
  std::shared_ptr<const Unit> unit_;
  std::optional<LineProgram> program_;
};

DwarfBytes set_address(std::uint64_t address) {
  DwarfBytes bytes;
  for (const unsigned byte : kSetAddress) bytes.u8(byte);
  return bytes.u64(address);
}

// Version 4, two directories, three files; `operations` in an instruction of 4 bytes when there are several.
DwarfBytes version_4(const DwarfBytes& program, unsigned operations = 1) {
  const auto header = DwarfBytes()
                          .list({operations > 1 ? 4U : 1U, operations, 1, 0xfb, 14, 13})
                          .list(kOpcodeLengths)
                          .text("include")
                          .text("/usr/include")
                          .u8(0)
                          .text("a.c")
                          .list({0, 0, 0})
                          .text("b.h")
                          .list({1, 0, 0})
                          .text("c.h")
                          .list({2, 0, 0})
                          .u8(0);
  return DwarfBytes().u16(4).u32(header.size()).bytes(header).bytes(program).with_length();
}

TEST(LineProgram, MakesPathsAbsolute) {
  const LineScene scene(version_4({}));
  ASSERT_TRUE(scene.program().has_value());
  EXPECT_EQ(scene.program()->path(0), "");
  EXPECT_EQ(scene.program()->path(1), "/work/a.c");
  EXPECT_EQ(scene.program()->path(2), "/work/include/b.h");
  EXPECT_EQ(scene.program()->path(3), "/usr/include/c.h");
  EXPECT_EQ(scene.program()->path(4), "");
}

TEST(LineProgram, ReadsTheTablesOfVersion5) {
  const auto strings = DwarfBytes().text("/build").text("sub").text("main.c").text("sub.h");
  const auto header = DwarfBytes()
                          .list({1, 1, 1, 0xfb, 14, 13})
                          .list(kOpcodeLengths)
                          .list({1, 1, 0x1f})  // directories: DW_LNCT_path as DW_FORM_line_strp
                          .u8(2)
                          .u32(0)
                          .u32(7)
                          .list({3, 1, 0x1f, 2, 0x0b, 5, 0x1e})  // and a directory index, an MD5 sum
                          .u8(2)
                          .u32(11)
                          .u8(0)
                          .u64(0)
                          .u64(0)
                          .u32(18)
                          .u8(1)
                          .u64(0)
                          .u64(0);
  const LineScene scene(DwarfBytes().u16(5).u8(8).u8(0).u32(header.size()).bytes(header).with_length(),
                        strings);
  ASSERT_TRUE(scene.program().has_value());
  EXPECT_EQ(scene.program()->path(0), "/build/main.c");
  EXPECT_EQ(scene.program()->path(1), "/work/sub/sub.h");
}

TEST(LineProgram, GivesTheLastOfSeveralRowsAtAnAddress) {
  // Lines 11 and 12 at 0x1000, line 0 at 0x1004, the end at 0x1008.
  DwarfBytes program = set_address(0x1000);
  program.list({3, 10, 1, 3, 1, 5, 7, 1, 3, 0x74, 2, 4, 1, 2, 4, 0, 1, 1});
  LineScene scene(version_4(program));
  const auto lines = scene.find({0xfff, 0x1000, 0x1003, 0x1004, 0x1007, 0x1008});
  EXPECT_FALSE(lines[0].is_found);
  EXPECT_EQ(lines[1].line, 12U);
  EXPECT_EQ(lines[1].column, 7U);
  EXPECT_EQ(lines[2].line, 12U);
  EXPECT_TRUE(lines[3].is_found);
  EXPECT_EQ(lines[3].line, 0U);
  EXPECT_TRUE(lines[4].is_found);
  EXPECT_FALSE(lines[5].is_found);
}

TEST(LineProgram, KeepsSequencesApartAndIgnoresThoseThatWereThrownAway) {
  DwarfBytes program = set_address(0x2000);
  program.list({3, 19, 1, 2, 0x10, 0, 1, 1});  // line 20 at 0x2000
  program.bytes(set_address(0)).list({3, 29, 1, 2, 0x80, 0x80, 1, 0, 1, 1});
  program.bytes(set_address(0x1000)).list({4, 2, 3, 39, 1, 2, 0x10, 0, 1, 1});  // line 40 of file 2
  LineScene scene(version_4(program));
  const auto lines = scene.find({0x1000, 0x1010, 0x2000, 0x200f, 0x2010});
  EXPECT_EQ(lines[0].line, 40U);
  EXPECT_EQ(lines[0].file, 2U);
  EXPECT_FALSE(lines[1].is_found);
  EXPECT_EQ(lines[2].line, 20U);
  EXPECT_EQ(lines[3].line, 20U);
  EXPECT_FALSE(lines[4].is_found);
}

TEST(LineProgram, CountsOperationsOfLongInstructions) {
  // Three operations in 4 bytes: 4 operations on, it is the next instruction; 2 more, the one after.
  DwarfBytes program = set_address(0x1000);
  program.list({1, 3, 1, 2, 4, 1, 3, 1, 2, 2, 1, 9, 4, 0, 0, 1, 1});
  LineScene scene(version_4(program, 3));
  const auto lines = scene.find({0x1003, 0x1004, 0x1007, 0x1008, 0x100b, 0x100c});
  EXPECT_EQ(lines[0].line, 1U);
  EXPECT_EQ(lines[1].line, 2U);
  EXPECT_EQ(lines[2].line, 2U);
  EXPECT_EQ(lines[3].line, 3U);
  EXPECT_EQ(lines[4].line, 3U);
  EXPECT_FALSE(lines[5].is_found);
}

TEST(LineProgram, SkipsOpcodesThatItDoesNotKnow) {
  DwarfBytes program = set_address(0x1000);
  program.list(
      {12, 0x85, 1, 0, 3, 0x99, 1, 2, 0, 2, 4, 5, 21});  // one of 13's, a vendor's, a discriminator; line 4
  program.list({2, 8, 0, 1, 1});
  LineScene scene(version_4(program));
  EXPECT_EQ(scene.find({0x1004})[0].line, 4U);
}

TEST(LineProgram, SaysWhenItIsNotAllThere) {
  const LineScene scene(DwarfBytes().u32(100).u16(4));
  EXPECT_FALSE(scene.program().has_value());
  EXPECT_EQ(scene.problem(), "lines at 0x0: they end outside of .debug_line");
}

TEST(LineProgram, ADirectoryThatIsNotThereIsNone) {
  const auto header = DwarfBytes()
                          .list({1, 1, 1, 0xfb, 14, 13})
                          .list(kOpcodeLengths)
                          .list({1, 1, 0x1f, 1})  // one directory
                          .u32(0)
                          .list({2, 1, 0x1f, 2, 0x0b, 2})  // two files, with the index of theirs
                          .u32(7)
                          .u8(0)
                          .u32(7)
                          .u8(1);
  const LineScene scene(DwarfBytes().u16(5).u8(8).u8(0).u32(header.size()).bytes(header).with_length(),
                        DwarfBytes().text("/build").text("a.c"));
  ASSERT_TRUE(scene.program().has_value());
  EXPECT_EQ(scene.program()->path(0), "/build/a.c");
  EXPECT_EQ(scene.program()->path(1), "/work/a.c");
  EXPECT_EQ(scene.program()->path(2), "");
}

}  // namespace
}  // namespace ddprof
