#pragma once

#include <cstddef>
#include <cstdint>
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

// One stack as it was met, with all that is needed to unwind it again and nothing else: no binaries, and of
// the stack only the words that matter. Every unwinding bug ends as one of these under tests/golden/unwind
// (stack_case_files.hpp).

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
// word that could be such an address stays too, for whoever is to mend the unwinder. Fails when what is kept
// does not unwind like the sample.
[[nodiscard]] Result<StackCase> record_stack_case(const StackCaseSource& source);

[[nodiscard]] std::string_view stop_reason_name(StopReason reason);

}  // namespace ddprof
