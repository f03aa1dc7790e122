#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/build_id.hpp"
#include "base/registers.hpp"
#include "base/result.hpp"
#include "unwind/unwinder.hpp"

namespace ddprof {

// One recorded stack, with all that is needed to unwind it again and nothing else: no binaries, and of the
// stack only the words that matter. Every unwinding bug ends as one of these under tests/golden/unwind.

struct StackCaseRow {
  std::uint64_t start = 0;  // ELF addresses
  std::uint64_t end = 0;
  ddprof_unwind_rule rule{};
};

struct StackCaseCode {
  std::uint64_t elf_address = 0;
  std::vector<std::byte> bytes;
};

struct StackCaseModule {
  std::string name;
  BuildId build_id;
  Address start;
  Address end;
  std::uint64_t bias = 0;
  std::vector<StackCaseRow> rows;  // ascending; code in between has no CFI
  std::vector<StackCaseCode> code;
};

struct StackCase {
  Architecture architecture = Architecture::x86_64;
  std::uint64_t pointer_authentication_bits = 0;
  Registers registers;
  Address stack_start;
  std::vector<std::byte> stack;
  bool is_truncated = false;
  std::vector<StackCaseModule> modules;

  // What is expected.
  std::vector<std::string> frames;  // "module+0x12ab", leaf first
  StopReason reason = StopReason::complete;
};

struct StackCaseResult {
  std::vector<std::string> frames;
  StopReason reason = StopReason::complete;

  friend bool operator==(const StackCaseResult&, const StackCaseResult&) = default;
};

// Unwinds a case again.
[[nodiscard]] StackCaseResult replay(const StackCase& stack_case);

struct StackCaseSource {
  Architecture architecture = Architecture::x86_64;
  std::uint64_t pointer_authentication_bits = 0;
  const Registers& registers;
  const StackCopy& copy;
  const ModuleMap& modules;
  const RuleDictionary& rules;
  std::function<std::pair<std::string, BuildId>(FileId)> describe;  // name and build id
};

// Makes a case of a live sample. Words of the stack that do not change the result become 0: what remains are
// return addresses, frame pointers and the like, not the program's data. If the stack is incomplete, every
// word that could be such an address stays too: it is needed to find the bug. Fails when the reduced case
// does not unwind like the sample.
[[nodiscard]] Result<StackCase> record_stack_case(const StackCaseSource& source);

[[nodiscard]] std::string_view stop_reason_name(StopReason reason);

// The text of a case, one fact per line; '#' starts a comment. case.txt holds everything but the stack's
// bytes and what belongs to one module, whose rows and code are in a text of their own.
//
// clang-format off
//   architecture x86_64                                   row 0x1130-0x1150 cfa=sp cfa_offset=16 fp=cfa ra=cfa-8 fp_offset=-16
//   register sp 0x7ffe0010                                code 0x1140 e8 1b 00 00 00
//   stack 0x7ffe0010 whole
//   module 0x5500000000 0x5500001000 0x5500000000 - program
//   frame program+0x1140
//   reason complete
// clang-format on
[[nodiscard]] std::string format_stack_case(const StackCase& stack_case);
[[nodiscard]] std::string format_stack_case_module(const StackCaseModule& module);
[[nodiscard]] Result<StackCase> parse_stack_case(std::string_view text);
[[nodiscard]] Result<void> parse_stack_case_module(std::string_view text, StackCaseModule& module);

// A case as a folder: case.txt, stack.bin and one module.N.unwind per module. Writing creates the folder if
// need be and replaces files of an earlier case.
[[nodiscard]] Result<void> write_stack_case(const std::filesystem::path& directory,
                                            const StackCase& stack_case);
[[nodiscard]] Result<StackCase> read_stack_case(const std::filesystem::path& directory);

}  // namespace ddprof
