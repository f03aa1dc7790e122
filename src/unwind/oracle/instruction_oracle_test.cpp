// The lengths of instructions, and the registers that they write, against Capstone's reading of the same
// bytes.
#include <capstone/capstone.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "elf/elf_file.hpp"
#include "unwind/cfi_index.hpp"
#include "unwind/instruction_x86_64.hpp"

namespace ddprof {
namespace {

using x86_64::Instruction;
using Effect = Instruction::Effect;
using Flow = Instruction::Flow;

class Capstone {
 public:
  Capstone() {
    cs_open(CS_ARCH_X86, CS_MODE_64, &handle_);
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    read_ = cs_malloc(handle_);
    constexpr std::string_view kOld = "axcxdxbxspbpsidi";
    for (unsigned number = 0; number < 16; ++number) {
      const std::string name =
          number < 8 ? std::string(kOld.substr(number * 2, 2)) : "r" + std::to_string(number);
      for (const std::string prefix : {"", "r", "e"}) numbers_[prefix + name] = number;
      for (const std::string suffix : {"d", "w", "b", "l"}) numbers_[name + suffix] = number;
      if (number < 4) numbers_[name.substr(0, 1) + "l"] = numbers_[name.substr(0, 1) + "h"] = number;
    }
  }
  ~Capstone() {
    cs_free(read_, 1);
    cs_close(&handle_);
  }
  Capstone(const Capstone&) = delete;
  Capstone& operator=(const Capstone&) = delete;

  bool read(std::span<const std::byte> code) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(code.data());
    std::size_t size = code.size();
    std::uint64_t address = 0;
    return cs_disasm_iter(handle_, &at, &size, &address, read_);
  }
  [[nodiscard]] std::size_t length() const { return read_->size; }
  [[nodiscard]] std::string_view name() const { return read_->mnemonic; }
  [[nodiscard]] std::string text() const { return std::string(read_->mnemonic) + " " + read_->op_str; }
  [[nodiscard]] unsigned writes() const {
    cs_regs readers;
    cs_regs writers;
    std::uint8_t reader_count = 0;
    std::uint8_t writer_count = 0;
    cs_regs_access(handle_, read_, readers, &reader_count, writers, &writer_count);
    unsigned registers = 0;
    for (std::size_t i = 0; i < writer_count; ++i) {
      const char* name = cs_reg_name(handle_, writers[i]);
      const auto found = numbers_.find(name == nullptr ? "" : name);
      if (found != numbers_.end()) registers |= 1U << found->second;
    }
    return registers;
  }

 private:
  csh handle_ = 0;
  cs_insn* read_ = nullptr;
  std::map<std::string, unsigned> numbers_;
};

unsigned writes_of(const Instruction& instruction) {
  constexpr unsigned kStackPointer = 1U << x86_64::kRsp;
  unsigned registers = instruction.writes;
  switch (instruction.effect) {
    case Effect::exchange:
      registers |= 1U << instruction.from;
      [[fallthrough]];
    case Effect::add:
    case Effect::load:
      return registers | 1U << instruction.to;
    case Effect::push:
      return registers | kStackPointer;
    case Effect::pop:
      return registers | kStackPointer | (instruction.to == x86_64::kNoRegister ? 0U : 1U << instruction.to);
    case Effect::leave:
    case Effect::enter:
      return registers | kStackPointer | 1U << x86_64::kRbp;
    default:
      return registers;
  }
}

// Where Capstone 4 is wrong: cdq writes rdx alone, test writes nothing, cmpxchg and system calls write rax.
bool is_misread(std::string_view name) {
  for (const std::string_view known :
       {"cdq", "cqo", "test", "cmpxchg", "lock cmpxchg", "syscall", "xabort"}) {
    if (name == known) return true;
  }
  return false;
}

struct Tally {
  std::size_t read = 0;
  std::size_t unread_by_capstone = 0;  // EVEX, and some of VEX
  std::vector<std::string> differences;
};

void compare(std::span<const std::byte> code, Capstone& capstone, Tally& tally) {
  while (!code.empty()) {
    const auto instruction = x86_64::decode(code);
    if (!instruction) {
      if (capstone.read(code)) tally.differences.push_back("not read: " + capstone.text());
      return;  // a table between functions
    }
    ++tally.read;
    if (!capstone.read(code)) {
      ++tally.unread_by_capstone;
    } else if (capstone.length() != instruction->length) {
      tally.differences.push_back("length: " + capstone.text());
    } else if (instruction->flow != Flow::ret && instruction->flow != Flow::call &&
               !is_misread(capstone.name()) && capstone.writes() != writes_of(*instruction)) {
      tally.differences.push_back("writes: " + capstone.text());
    }
    code = code.subspan(instruction->length);
  }
}

void expect_capstones_reading(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) GTEST_SKIP() << path << " is not installed";
  const auto region = MappedRegion::map_file(fd.get());
  ASSERT_TRUE(region.ok());
  const auto file = ElfFile::parse(region->bytes());
  ASSERT_TRUE(file.ok());
  const auto eh_frame = file->find_eh_frame();
  ASSERT_TRUE(eh_frame);
  UnwindTableCounters counters;
  const CfiIndex functions({.data = eh_frame->data, .vaddr = eh_frame->vaddr}, CodeRanges(file->segments()),
                           counters);
  Capstone capstone;
  Tally tally;
  for (std::size_t i = 0; i < functions.size(); i += 3) {
    const auto function = functions.fde(i);
    if (!function) continue;
    const auto code = file->data_at(function->begin);
    compare(code.first(std::min<std::size_t>(code.size(), function->end - function->begin)), capstone, tally);
  }
  EXPECT_GT(tally.read, 50000U);
  EXPECT_LT(tally.unread_by_capstone, tally.read / 50);
  EXPECT_LE(tally.differences.size(), tally.read / 100000) << testing::PrintToString(tally.differences);
}

TEST(InstructionOracle, ReadsLibcAsCapstoneDoes) {
  expect_capstones_reading("/usr/lib/x86_64-linux-gnu/libc.so.6");
}
TEST(InstructionOracle, ReadsLibstdcxxAsCapstoneDoes) {
  expect_capstones_reading("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}
TEST(InstructionOracle, ReadsLibcryptoAsCapstoneDoes) {
  expect_capstones_reading("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
}

}  // namespace
}  // namespace ddprof
