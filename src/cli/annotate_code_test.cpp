#include "cli/annotation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "cli/disassembler.hpp"
#include "cli/report_fixture.hpp"

// This program annotates a function of its own; binutils says what is there.

extern "C" __attribute__((noinline, visibility("default"))) int ddprof_annotated_function(int count) {
  int sum = 0;
  for (int turn = 0; turn < count; ++turn) sum += turn * turn ^ sum;
  return sum;
}

namespace ddprof {
namespace {

using ::testing::HasSubstr;

struct OwnMapping {
  std::uint64_t start = 0, limit = 0, offset = 0;
};

OwnMapping mapping_of(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    OwnMapping mapping;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &mapping.start, &mapping.limit,
                    &mapping.offset) == 3 &&
        address >= mapping.start && address < mapping.limit)
      return mapping;
  }
  return {};
}

struct PipeCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

// Address and mnemonic of each instruction, as objdump prints them.
std::map<std::uint64_t, std::string> objdump(const std::string& file) {
  const std::string command =
      "objdump -d -M intel --no-show-raw-insn --disassemble=ddprof_annotated_function " + file +
      " 2>/dev/null";
  const std::unique_ptr<std::FILE, PipeCloser> pipe(popen(command.c_str(), "r"));
  std::map<std::uint64_t, std::string> instructions;
  std::array<char, 500> line{};
  while (pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::uint64_t address = 0;
    std::array<char, 40> mnemonic{}, next{};
    const int words =
        std::sscanf(line.data(), " %" SCNx64 ": %39s %39s", &address, mnemonic.data(), next.data());
    if (line[0] != ' ' || words < 2) continue;
    const bool is_prefix = std::string_view(mnemonic.data()).starts_with("rex");
    instructions[address] = is_prefix ? next.data() : mnemonic.data();
  }
  return instructions;
}

class CodeOfThisProgram : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_NE(ddprof_annotated_function(5), 1);
    address_ = reinterpret_cast<std::uint64_t>(&ddprof_annotated_function);
    const OwnMapping own = mapping_of(address_);
    path_ = std::filesystem::read_symlink("/proc/self/exe");
    ProfileBuilder& builder = fixture_.builder();
    mapping_ = builder.add_mapping({.start = {own.start},
                                    .limit = {own.limit},
                                    .file_offset = own.offset,
                                    .path = builder.intern(path_)});
  }

  void sample(std::uint64_t offset, std::int64_t milliseconds) {
    ProfileBuilder& builder = fixture_.builder();
    const ProfileLine line{builder.add_function("ddprof_annotated_function", {}, "own.cc"), 7};
    const auto location = builder.add_location(mapping_, {address_ + offset}, std::span(&line, 1));
    builder.add_sample({{location}, {1, milliseconds * ReportFixture::kMillisecond}, {}});
  }

  [[nodiscard]] std::vector<Listing> annotate() {
    auto view = make_report_view(fixture_.builder().profile(), {});
    for (std::uint32_t frame = 0; view.ok() && frame < view->frames.size(); ++frame) {
      if (view->frames[frame].name == "ddprof_annotated_function") return annotate_code(*view, frame);
    }
    return {};
  }

  ReportFixture fixture_;
  std::uint32_t mapping_ = 0;
  std::uint64_t address_ = 0;
  std::string path_;
};

TEST_F(CodeOfThisProgram, HasTheInstructionsThatObjdumpSees) {
  if (std::system("command -v objdump >/dev/null 2>&1") != 0) GTEST_SKIP() << "objdump is not installed";
  sample(0, 300);
  const std::map<std::uint64_t, std::string> expected = objdump(path_);
  const std::vector<Listing> listings = annotate();
  ASSERT_EQ(listings.size(), 1U);
  EXPECT_EQ(listings[0].problem, "");
  EXPECT_EQ(listings[0].title, "ddprof_annotated_function");
  ASSERT_FALSE(expected.empty());
  // Without optimisation and with sanitizers it is longer than what is listed as a whole.
  constexpr std::size_t kListedAsAWhole = 50;
  if (expected.size() <= kListedAsAWhole) {
    EXPECT_EQ(listings[0].rows.size(), expected.size());
  }
  for (const ListingRow& row : listings[0].rows) {
    const auto found = expected.find(row.number);
    ASSERT_NE(found, expected.end()) << row.text;
    // The two spell a few mnemonics differently (ret and retq, cs nop, sal and shl): the first letter agrees.
    // Capstone 5 calls two bytes of padding nop; objdump calls them xchg ax,ax.
    if (row.text.starts_with("nop") && found->second == "xchg") continue;
    EXPECT_EQ(row.text.front(), found->second.front());
  }
}

TEST_F(CodeOfThisProgram, AnAddressInsideOfAnInstructionCountsForIt) {
  constexpr std::size_t kLongestInstruction = 15;
  const auto* code = reinterpret_cast<const std::byte*>(&ddprof_annotated_function);
  const auto disassembler = Disassembler::open(Architecture::x86_64);
  const std::size_t first_size = disassembler->disassemble({code, kLongestInstruction}, 0).at(1).address;
  sample(0, 300);
  sample(first_size, 200);
  sample(first_size - 1, 50);
  const std::vector<Listing> listings = annotate();
  EXPECT_THAT(listings[0].note, HasSubstr("no build id"));
  EXPECT_EQ(listings[0].rows[0].sum.self, 350 * ReportFixture::kMillisecond);
  EXPECT_EQ(listings[0].rows[1].sum.self, 200 * ReportFixture::kMillisecond);
  EXPECT_EQ(listings[0].rows[1].place, "own.cc:7");
}

TEST(Disassembler, KnowsThatI386HasOtherInstructions) {
  const std::vector<unsigned char> bytes{0x40, 0x06, 0x55};
  const auto instructions =
      Disassembler::open(Architecture::i386)->disassemble(std::as_bytes(std::span(bytes)), 0);
  ASSERT_EQ(instructions.size(), 3U);
  EXPECT_EQ(instructions[0].text, "inc eax");
  EXPECT_EQ(instructions[1].text, "push es");
  EXPECT_EQ(instructions[2].text, "push ebp");
}

TEST(Disassembler, CoversBytesThatAreNoInstructions) {
  const auto disassembler = Disassembler::open(Architecture::x86_64);
  ASSERT_TRUE(disassembler.ok());
  // push rbp; an invalid opcode in 64-bit mode; call +5
  const std::vector<unsigned char> bytes{0x55, 0x06, 0xe8, 0x05, 0, 0, 0};
  const auto code = disassembler->disassemble(std::as_bytes(std::span(bytes)), 0x1000);
  ASSERT_EQ(code.size(), 3U);
  EXPECT_EQ(code[0].text, "push rbp");
  EXPECT_EQ(code[1].text, "(bad) 06");
  EXPECT_EQ(code[2].address, 0x1002U);
  EXPECT_EQ(code[2].target, 0x100cU);
}

TEST(Disassembler, KnowsArm) {
  const auto disassembler = Disassembler::open(Architecture::aarch64);
  ASSERT_TRUE(disassembler.ok());
  const std::vector<unsigned char> bytes{0xc0, 0x03, 0x5f, 0xd6, 0x02, 0x00, 0x00, 0x94};  // ret; bl +8
  const auto code = disassembler->disassemble(std::as_bytes(std::span(bytes)), 0x1000);
  ASSERT_EQ(code.size(), 2U);
  EXPECT_EQ(code[0].text, "ret");
  EXPECT_EQ(code[1].target, 0x100cU);
}

}  // namespace
}  // namespace ddprof
