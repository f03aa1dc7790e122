#include "symbol/go_lines.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "symbol/go_program_bytes.hpp"

namespace ddprof {
namespace {

using Offsets = GoProgramBytes::Offsets;
constexpr std::uint64_t kGoCode = GoProgramBytes::kCode;

void put32(std::string& text, std::uint32_t value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One function of 0x40 bytes: main.outer (line 10 of a.go, from 0x10 on line 11) with main.middle (b.go)
// inlined at [0x20, 0x40), called from line 11, and main.inner (b.go) inlined into that at [0x30, 0x40).
class OneFunction {
 public:
  explicit OneFunction(std::uint32_t magic, std::uint32_t data_count = 4)
      : is_120_(magic == GoProgramBytes::kGo120), magic_(magic) {
    Offsets at;
    const auto place = [this] { return GoProgramBytes::kHeaderBytes + body_.size(); };
    at.names = place();
    const std::uint32_t outer = text("main.outer"), middle = text("main.middle"), inner = text("main.inner");
    at.units = place();
    put32(body_, 0), put32(body_, 5);
    at.files = place();
    text_from(at.files, "a.go"), text_from(at.files, "b.go");
    at.sequences = place();
    body_ += '\xff';  // offset 0 means none
    // A change, doubled (odd: negative), and for how many bytes.
    const std::uint32_t files = sequence(at, {2, 0x20, 2, 0x20}),
                        lines = sequence(at, {22, 0x10, 2, 0x10, 40, 0x10, 20, 0x10}),
                        inlined = sequence(at, {0, 0x20, 2, 0x10, 2, 0x10});
    at.functions = place();
    put32(body_, 0), put32(body_, 12), put32(body_, 0x40);
    for (const std::uint32_t field : {0U, outer, 0U, 0U, 0U, files, lines, 3U, 0U}) put32(body_, field);
    if (is_120_) put32(body_, 9);
    put32(body_, data_count << 24U);  // kind, flags, padding, count of data
    for (const std::uint32_t field : {0U, 0U, inlined, 0xffffffffU, 0xffffffffU, 0xffffffffU, 0U})
      put32(body_, field);
    call(middle, 0x11, 20);
    call(inner, 0x21, 30);
    offsets_ = at;
  }

  [[nodiscard]] GoProgramBytes program(bool has_code_start = true) const {
    return {magic_, 1, offsets_, body_, data_, has_code_start};
  }
  [[nodiscard]] GoProgramBytes cut(std::size_t size) const {
    return {magic_, 1, offsets_, std::string_view(body_).substr(0, size), data_};
  }
  [[nodiscard]] std::size_t size() const { return body_.size(); }

 private:
  std::uint32_t text(std::string_view value) { return text_from(GoProgramBytes::kHeaderBytes, value); }
  std::uint32_t text_from(std::uint64_t start, std::string_view value) {
    const std::uint64_t at = GoProgramBytes::kHeaderBytes + body_.size() - start;
    body_.append(value) += '\0';
    return static_cast<std::uint32_t>(at);
  }
  std::uint32_t sequence(const Offsets& offsets, std::initializer_list<int> pairs) {
    const std::uint64_t at = GoProgramBytes::kHeaderBytes + body_.size() - offsets.sequences;
    for (const int number : pairs) body_ += static_cast<char>(number);
    body_ += '\0';
    return static_cast<std::uint32_t>(at);
  }
  void call(std::uint32_t name, std::uint32_t parent, std::uint32_t start_line) {
    if (is_120_) {
      for (const std::uint32_t field : {0U, name, parent, start_line}) put32(data_, field);
    } else {
      for (const std::uint32_t field : {0U, 99U, 99U, name, parent}) put32(data_, field);
    }
  }

  bool is_120_;
  std::uint32_t magic_;
  Offsets offsets_;
  std::string body_;
  std::string data_;
};

// "name file:line", innermost first; with "@line" of the start, if that is known.
std::string calls_at(const GoLines& lines, std::uint64_t address) {
  std::string text;
  lines.find(address, [&](std::span<const SourceCall> calls) {
    for (const SourceCall& call : calls) {
      text += fmt::format("{}{} {}:{}", text.empty() ? "" : ", ", call.name, call.file, call.line);
      if (call.start_line != 0) text += fmt::format("@{}", call.start_line);
    }
  });
  return text;
}

TEST(GoLines, ReadsFunctionsAndInlinedCallsOfGo118) {
  const GoProgramBytes program = OneFunction(GoProgramBytes::kGo118).program();
  const auto file = ElfFile::parse(program.bytes());
  const auto lines = GoLines::find(*file);
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(calls_at(*lines, kGoCode - 1), "");
  EXPECT_EQ(calls_at(*lines, kGoCode), "main.outer a.go:10");
  EXPECT_EQ(calls_at(*lines, kGoCode + 0x1f), "main.outer a.go:11");
  EXPECT_EQ(calls_at(*lines, kGoCode + 0x20), "main.middle b.go:31, main.outer a.go:11");
  EXPECT_EQ(calls_at(*lines, kGoCode + 0x3f), "main.inner b.go:41, main.middle b.go:31, main.outer a.go:11");
  EXPECT_EQ(calls_at(*lines, kGoCode + 0x40), "");
}

TEST(GoLines, ReadsStartLinesOfGo120AndFindsTheCodeWhenTheHeaderDoesNotSayIt) {
  for (const bool has_code_start : {true, false}) {
    const GoProgramBytes program = OneFunction(GoProgramBytes::kGo120).program(has_code_start);
    const auto file = ElfFile::parse(program.bytes());
    const auto lines = GoLines::find(*file);
    ASSERT_TRUE(lines.has_value());
    EXPECT_EQ(calls_at(*lines, kGoCode), "main.outer a.go:10@9");
    EXPECT_EQ(calls_at(*lines, kGoCode + 0x30),
              "main.inner b.go:41@30, main.middle b.go:31@20, main.outer a.go:11@9");
  }
}

// The calls are the fourth of the data that a function points to.
TEST(GoLines, AFunctionWithLessDataHasNoInlinedCalls) {
  const GoProgramBytes program = OneFunction(GoProgramBytes::kGo118, 3).program();
  const auto file = ElfFile::parse(program.bytes());
  const auto lines = GoLines::find(*file);
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(calls_at(*lines, kGoCode), "main.outer a.go:10");
  EXPECT_EQ(calls_at(*lines, kGoCode + 0x30), "main.outer b.go:41");
}

TEST(GoLines, CutTablesAnswerWithWhatIsLeft) {
  const OneFunction function(GoProgramBytes::kGo120);
  for (std::size_t size = 0; size < function.size(); ++size) {
    const GoProgramBytes program = function.cut(size);
    const auto file = ElfFile::parse(program.bytes());
    const auto lines = GoLines::find(*file);
    if (lines) {
      EXPECT_LE(calls_at(*lines, kGoCode + 0x30).size(), 100U);
    }
  }
}

TEST(GoLines, OtherFilesHaveNone) {
  const GoProgramBytes program = OneFunction(0xfffffffa).program();
  EXPECT_FALSE(GoLines::find(*ElfFile::parse(program.bytes())).has_value());
}

}  // namespace
}  // namespace ddprof
