#include "stack_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <tuple>

#include "unwind/unwind_table.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMaxRowReach =
    64;  // how far a recorded row reaches around the address that was looked up
constexpr std::uint64_t kCodeReach = 16;
constexpr std::uint64_t kMaxModuleCode = 1 << 26;

// A case made ready to be unwound, perhaps many times.
class Replay {
 public:
  explicit Replay(const StackCase& stack_case)
      : case_(stack_case),
        unwinder_(rules_, stack_case.architecture, stack_case.pointer_authentication_bits) {
    for (const StackCaseModule& module : stack_case.modules) add(module);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  [[nodiscard]] StackCaseResult unwind(std::span<const std::byte> stack) {
    const StackCopy copy{case_.stack_start, stack, case_.is_truncated, {}};
    unwinder_.unwind(case_.registers, copy, map_, nullptr, nullptr, stack_);
    StackCaseResult result{{}, stack_.reason};
    for (const Frame& frame : stack_.frames) result.frames.push_back(text_of(frame));
    return result;
  }

 private:
  void add(const StackCaseModule& module) {
    const std::uint64_t base = module.start.value - module.bias;
    const std::uint64_t end = module.end.value - module.bias;
    UnwindTableBuilder builder(base, end - base, module.rows.size());
    std::uint64_t covered = base;
    for (const StackCaseRow& row : module.rows) {
      if (row.start > covered) builder.add(covered, RuleIndex::gap);
      builder.add(row.start, rules_.intern(row.rule));
      covered = row.end;
    }
    if (covered < end) builder.add(covered, RuleIndex::gap);
    tables_.push_back(std::move(builder).finish(end, {}));
    const std::uint32_t file = static_cast<std::uint32_t>(tables_.size());
    map_.add({module.start, module.end, module.bias, &tables_.back(), FileId{file}, code_of(module, base)});
  }

  std::span<const std::byte> code_of(const StackCaseModule& module, std::uint64_t base) {
    std::vector<std::byte>& code = code_.emplace_back();
    for (const StackCaseCode& piece : module.code) {
      const std::uint64_t offset = piece.elf_address - base;
      if (offset > kMaxModuleCode) continue;
      code.resize(std::max<std::size_t>(code.size(), offset + piece.bytes.size()));
      std::copy(piece.bytes.begin(), piece.bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    return code;
  }

  [[nodiscard]] std::string text_of(const Frame& frame) const {
    const std::uint32_t file = to_int(frame.file);
    return fmt::format("{}+{:#x}", file == 0 ? "unknown" : case_.modules[file - 1].name, frame.address);
  }

  const StackCase& case_;
  RuleDictionary rules_;
  Unwinder unwinder_;
  ModuleMap map_;
  std::deque<UnwindTable> tables_;
  std::deque<std::vector<std::byte>> code_;
  Stack stack_;
};

// The module of the source that a frame lies in.
const Module* module_of(const Frame& frame, const ModuleMap& modules) {
  for (const Module& module : modules.modules()) {
    if (module.file == frame.file && module.contains(Address{frame.address + module.bias})) return &module;
  }
  return nullptr;
}

// The row around an address, as far as the same rule governs.
StackCaseRow row_around(std::uint64_t address, const UnwindTable& table, const RuleDictionary& rules) {
  const RuleIndex rule = table.find(address);
  StackCaseRow row{address, address + 1, rules[rule]};
  while (address - row.start < kMaxRowReach && table.find(row.start - 1) == rule) --row.start;
  while (row.end - address < kMaxRowReach && table.find(row.end) == rule) ++row.end;
  return row;
}

void add_rows(std::uint64_t address, const Module& module, const RuleDictionary& rules,
              std::vector<StackCaseRow>& rows) {
  if (module.table == nullptr) return;
  // The byte before too: a trampoline is looked up one byte early.
  for (const std::uint64_t wanted : {address - 1, address}) {
    const StackCaseRow row = row_around(wanted, *module.table, rules);
    if (row.rule.cfa != DDPROF_CFA_GAP) rows.push_back(row);
  }
}

void sort_rows(std::vector<StackCaseRow>& rows) {
  std::sort(rows.begin(), rows.end(),
            [](const auto& left, const auto& right) { return left.start < right.start; });
  std::vector<StackCaseRow> merged;
  for (StackCaseRow row : rows) {
    // Rows that overlap have the same rule: they come from one table.
    if (!merged.empty() && row.start < merged.back().end) {
      merged.back().end = std::max(merged.back().end, row.end);
    } else {
      merged.push_back(row);
    }
  }
  rows = std::move(merged);
}

void add_code(std::uint64_t address, const Module& module, std::vector<StackCaseCode>& code) {
  const std::uint64_t runtime = address + module.bias;
  const std::uint64_t start = std::max(module.start.value, runtime - kCodeReach);
  const auto known = module.code_at(start);
  const auto bytes = known.first(std::min<std::size_t>(known.size(), runtime + kCodeReach - start));
  if (!bytes.empty()) code.push_back({start - module.bias, {bytes.begin(), bytes.end()}});
}

std::vector<StackCaseModule> touched_modules(const Stack& stack, const StackCaseSource& source) {
  std::vector<StackCaseModule> result;
  for (const Module& module : source.modules.modules()) {
    StackCaseModule touched;
    std::uint64_t lowest = UINT64_MAX;
    std::uint64_t highest = 0;
    for (const Frame& frame : stack.frames) {
      if (module_of(frame, source.modules) != &module) continue;
      lowest = std::min(lowest, frame.address);
      highest = std::max(highest, frame.address);
      add_rows(frame.address, module, source.rules, touched.rows);
      add_code(frame.address, module, touched.code);
    }
    if (lowest > highest) continue;
    sort_rows(touched.rows);
    std::tie(touched.name, touched.build_id) = source.describe(module.file);
    touched.bias = module.bias;
    // Only the pages in question: a case should not depend on how large the module was.
    const Address first{(lowest + module.bias - kPage) & ~(kPage - 1)};
    const Address last{(highest + module.bias + 2 * kPage) & ~(kPage - 1)};
    touched.start = std::max(module.start, first);
    touched.end = std::min(module.end, last);
    result.push_back(std::move(touched));
  }
  return result;
}

void drop_code_that_does_not_matter(StackCase& stack_case, const StackCaseResult& expected) {
  for (std::size_t i = 0; i < stack_case.modules.size(); ++i) {
    std::vector<StackCaseCode> code = std::move(stack_case.modules[i].code);
    stack_case.modules[i].code.clear();
    if (!(replay(stack_case) == expected)) stack_case.modules[i].code = std::move(code);
  }
}

// A word that might be a return address or point into the stack.
bool may_be_address(std::uint64_t word, const StackCaseSource& source) {
  const std::uint64_t start = source.copy.start.value;
  const bool is_near_stack = word >= start && word - start < (std::uint64_t{1} << 20);
  return is_near_stack || source.modules.find(Address{word}) != nullptr;
}

void clear_words_that_do_not_matter(StackCase& stack_case, const StackCaseResult& expected,
                                    const StackCaseSource& source) {
  Replay again(stack_case);
  const bool is_complete = expected.reason == StopReason::complete;
  std::vector<std::byte>& stack = stack_case.stack;
  std::size_t used = 0;
  for (std::size_t i = 0; i + 8 <= stack.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, stack.data() + i, sizeof word);
    std::memset(stack.data() + i, 0, sizeof word);
    const bool may_matter = !is_complete && may_be_address(word, source);
    if (!may_matter && again.unwind(stack) == expected) continue;
    std::memcpy(stack.data() + i, &word, sizeof word);
    used = i + 8;
  }
  if (again.unwind(std::span(stack).first(used)) == expected) stack.resize(used);
}

// The same for registers that no rule asked for.
void clear_registers_that_do_not_matter(StackCase& stack_case, const StackCaseResult& expected) {
  for (std::uint64_t& value : stack_case.registers.by_dwarf_number) {
    const std::uint64_t before = std::exchange(value, 0);
    if (!(replay(stack_case) == expected)) value = before;
  }
}

bool is_same_stack(const StackCaseResult& result, const Stack& stack) {
  if (result.reason != stack.reason || result.frames.size() != stack.frames.size()) return false;
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    if (!result.frames[i].ends_with(fmt::format("+{:#x}", stack.frames[i].address))) return false;
  }
  return true;
}

}  // namespace

StackCaseResult replay(const StackCase& stack_case) { return Replay(stack_case).unwind(stack_case.stack); }

Result<StackCase> record_stack_case(const StackCaseSource& source) {
  Unwinder unwinder(source.rules, source.architecture, source.pointer_authentication_bits);
  Stack stack;
  unwinder.unwind(source.registers, source.copy, source.modules, nullptr, nullptr, stack);

  StackCase result;
  result.architecture = source.architecture;
  result.pointer_authentication_bits = source.pointer_authentication_bits;
  result.registers = source.registers;
  result.stack_start = source.copy.start;
  result.stack.assign(source.copy.bytes.begin(), source.copy.bytes.end());
  result.is_truncated = source.copy.is_truncated;
  result.modules = touched_modules(stack, source);

  const StackCaseResult expected = replay(result);
  if (!is_same_stack(expected, stack)) {
    return make_error(ErrorCode::failed, "record stack: {} frames become {} once reduced to what they touch",
                      stack.frames.size(), expected.frames.size());
  }
  result.frames = expected.frames;
  result.reason = expected.reason;
  drop_code_that_does_not_matter(result, expected);
  clear_registers_that_do_not_matter(result, expected);
  clear_words_that_do_not_matter(result, expected, source);
  return result;
}

}  // namespace ddprof
