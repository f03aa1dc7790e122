#include "unwind/unwinder.hpp"

#include "unwind/unwinder_code.hpp"
#include "unwind/unwinder_walk.hpp"

namespace ddprof {

namespace {

// Code that calls rt_sigreturn, whether or not it has CFI (musl's and Go's have none). `address` is the first
// byte of the trampoline, the byte before it (a return address - 1), or the system call in it.
bool is_near_signal_trampoline(Architecture architecture, const Module& module, std::uint64_t address) {
  if (architecture == Architecture::i386)
    return find_signal_context_i386(module, address) || find_signal_context_i386(module, address + 1);
  constexpr std::uint64_t kLoadBytes = 7;
  for (const std::uint64_t start : {address, address + 1, address - kLoadBytes}) {
    if (is_signal_trampoline(architecture, module.code_at(start))) return true;
  }
  return false;
}

}  // namespace

void Stack::clear() {
  frames.clear();
  reason = StopReason::complete;
  stop_file = FileId::none;
  outer_frames = 0;
  inner_frames = 0;
  frames_from_code = 0;
  is_late = false;
}

Unwinder::Unwinder(const RuleDictionary& rules, Architecture architecture,
                   std::uint64_t pointer_authentication_bits)
    : rules_(rules),
      architecture_(architecture),
      code_address_mask_(~pointer_authentication_bits),
      cache_(std::size_t{1} << kCacheBits) {}

void Unwinder::unwind(const Registers& registers, const StackCopy& copy, const ModuleMap& modules,
                      OuterFrames* outer, MemoryReader* live, Stack& out) {
  out.clear();
  code_instructions_ = 0;
  followed_.registers = 0;
  const auto walk = [&]<typename Word>(Word) {
    while (!UnwindWalk<Word>(*this, registers, copy, modules, outer, live, out).run()) out.clear();
  };
  copy.is_32_bit ? walk(std::uint32_t{}) : walk(std::uint64_t{});
}

namespace {

constexpr std::size_t kMaxCodeRows = 16384;  // 600 KB
// A millisecond. The frames that are left are walked by the next samples; where every stack has new ones,
// it is a program that means harm.
constexpr unsigned kMaxInstructionsOfStack = 20'000;

}  // namespace

Unwinder::CodeKey Unwinder::code_key(const Module& module, const CodeBytes& code, std::uint64_t address) {
  constexpr std::uint64_t kFirstVersion = std::uint64_t{1} << 32;  // above all ids of files
  return {code.version == 0 ? to_int(module.file) : kFirstVersion + code.version, address};
}

CodeRow Unwinder::walk_code(const Module& module, const CodeBytes& code, std::uint64_t address,
                            bool is_return_address) {
  code_walk_.start({module.elf_address(code.begin), code.bytes, code.version},
                   module.table != nullptr ? &module.table->no_return() : nullptr);
  const CodeRow row = is_return_address ? code_walk_.find_caller(address) : code_walk_.find(address);
  code_instructions_ += row.instructions;
  return row;
}

const CodeRow& Unwinder::code_row(const Module& module, const CodeBytes& code, std::uint64_t pc,
                                  bool is_return_address) {
  static constexpr CodeRow kNotNow{.outcome = CodeRow::Outcome::too_long};
  const std::uint64_t address = module.elf_address(pc);
  const CodeKey key = code_key(module, code, address * 2 + (is_return_address ? 1 : 0));
  if (const auto known = code_rows_.find(key); known != code_rows_.end()) return known->second;
  if (code_instructions_ >= kMaxInstructionsOfStack) return kNotNow;
  if (code_rows_.size() >= kMaxCodeRows) code_rows_.clear();
  return code_rows_.emplace(key, walk_code(module, code, address, is_return_address)).first->second;
}

const Unwinder::CodeRegister& Unwinder::code_register(const Module& module, const CodeBytes& code,
                                                      std::uint64_t pc, bool is_return_address,
                                                      unsigned number) {
  static constexpr CodeRegister kNotNow{};
  const std::uint64_t address = module.elf_address(pc);
  const CodeKey key =
      code_key(module, code, (address * Registers::kCount + number) * 2 + (is_return_address ? 1 : 0));
  if (const auto known = code_registers_.find(key); known != code_registers_.end()) return known->second;
  if (code_instructions_ >= kMaxInstructionsOfStack) return kNotNow;
  if (code_registers_.size() >= kMaxCodeRows) code_registers_.clear();
  CodeRegister& found = code_registers_[key];
  const CodeRow row = walk_code(module, code, address, is_return_address);
  if (row.outcome == CodeRow::Outcome::rule) found = {row.rule, code_walk_.place_of(number)};
  return found;
}

const Unwinder::Location* Unwinder::look_up(std::uint64_t address, const ModuleMap& modules, Location& slot,
                                            bool is_32_bit) const {
  const Module* module = modules.find(Address{address});
  if (module == nullptr) return nullptr;
  slot = {address, modules.generation(), module->file, module->bias, rules_[RuleIndex::gap]};
  if (module->table != nullptr) slot.rule = rules_[module->table->find(module->elf_address(address))];
  if (slot.rule.cfa != DDPROF_CFA_SIGNAL_FRAME &&
      is_near_signal_trampoline(is_32_bit ? Architecture::i386 : architecture_, *module, address)) {
    slot.rule = {DDPROF_CFA_SIGNAL_FRAME, 0, 0, 0};
  }
  return &slot;
}

}  // namespace ddprof
