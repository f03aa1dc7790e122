#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "unwind/unwind_table.hpp"
#include "unwind/unwinder.hpp"

namespace ddprof {

// Where most tests put their only module.
inline constexpr FileId kProgram{1};
inline constexpr std::uint64_t kProgramStart = 0x10000;

// For tests: a made-up process whose modules have rules written by hand, and one thread's stack, word by
// word.
class UnwindScene {
 public:
  static constexpr std::uint64_t kStackStart = 0x7ff000000000;

  explicit UnwindScene(Architecture architecture = Architecture::x86_64,
                       std::uint64_t authentication_bits = 0)
      : unwinder(rules, architecture, authentication_bits) {
    registers.sp = kStackStart;
  }

  using Rows = std::initializer_list<std::pair<std::uint64_t, ddprof_unwind_rule>>;

  // Code at [start, start + 0x1000) whose ELF addresses begin at 0; each row holds from its ELF address on.
  void add_module(std::uint64_t start, FileId file, Rows rows, std::span<const std::byte> code = {}) {
    UnwindTableBuilder builder(0, kModuleBytes, rows.size());
    for (const auto& [address, rule] : rows) builder.add(address, rules.intern(rule));
    tables_.push_back(std::move(builder).finish(kModuleBytes, {}));
    map.add({Address{start}, Address{start + kModuleBytes}, start, &tables_.back(), file, code});
  }
  void add_module_without_table(std::uint64_t start, FileId file, std::span<const std::byte> code = {}) {
    map.add({Address{start}, Address{start + kModuleBytes}, start, nullptr, file, code});
  }

  // The stack, from its pointer upward.
  void push(std::initializer_list<std::uint64_t> words) { stack.insert(stack.end(), words); }
  [[nodiscard]] std::uint64_t address_of(std::size_t index) const { return kStackStart + index * 8; }
  [[nodiscard]] StackCopy copy() const {
    return {Address{kStackStart}, std::as_bytes(std::span(stack)), false, {}};
  }
  // Only the first words were copied.
  [[nodiscard]] StackCopy copy_of(std::size_t words, Nanoseconds taken_at = {}) const {
    return {Address{kStackStart}, std::as_bytes(std::span(stack).first(words)), true, taken_at};
  }

  const Stack& unwind() { return unwind(copy()); }
  const Stack& unwind(const StackCopy& bytes, OuterFrames* outer = nullptr, MemoryReader* live = nullptr) {
    unwinder.unwind(registers, bytes, map, outer, live, result);
    return result;
  }

  static constexpr std::uint64_t kModuleBytes = 0x1000;
  RuleDictionary rules;
  ModuleMap map;
  Registers registers;
  std::vector<std::uint64_t> stack;
  Unwinder unwinder;
  Stack result;

 private:
  std::deque<UnwindTable> tables_;
};

inline constexpr ddprof_unwind_rule kEndRule{DDPROF_CFA_END, 0, 0, 0};
inline constexpr ddprof_unwind_rule kSignalRule{DDPROF_CFA_SIGNAL_FRAME, 0, 0, 0};

// A frame of `bytes` (with its return address) under the stack pointer; the frame pointer is not touched.
constexpr ddprof_unwind_rule sp_rule(std::int32_t bytes) { return {DDPROF_CFA_SP, DDPROF_FP_SAME, 0, bytes}; }
// The same, with the caller's frame pointer saved at CFA + fp_offset.
constexpr ddprof_unwind_rule sp_rule(std::int32_t bytes, std::int16_t fp_offset) {
  return {DDPROF_CFA_SP, DDPROF_FP_AT_CFA, fp_offset, bytes};
}
// push %rbp; mov %rsp,%rbp.
inline constexpr ddprof_unwind_rule kFramePointerRule{DDPROF_CFA_FP, DDPROF_FP_AT_CFA, -16, 16};

}  // namespace ddprof
