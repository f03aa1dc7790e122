#include "unwind/unwinder_walk.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace ddprof {

namespace {

// uc_mcontext.gregs of x86-64 (asm/sigcontext.h): r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip, 40 bytes into
// the ucontext, by their DWARF numbers.
constexpr std::array<std::uint8_t, 16> kContextOrder{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
constexpr std::uint64_t kContextRegisters = 40;

// rt_sigframe of aarch64: siginfo (128), ucontext up to its mcontext (176), fault address (8), x0..x30, sp,
// pc.
constexpr std::uint64_t kArmContextRegisters = 128 + 176 + 8;

// sigcontext of i386 (asm/sigcontext.h): four segments, edi .. eax, trap number, error code, eip.
constexpr std::uint64_t k386ContextRegisters = 16;
constexpr std::uint64_t k386ContextPc = k386ContextRegisters + 10 * 4;

}  // namespace

template <typename Word>
UnwindWalk<Word>::UnwindWalk(Unwinder& unwinder, const Registers& registers, const StackCopy& copy,
                             const ModuleMap& modules, OuterFrames* outer, MemoryReader* live, Stack& out)
    : unwinder_(unwinder),
      copy_(copy),
      modules_(modules),
      outer_(outer),
      live_(outer == nullptr ? nullptr : live),  // nothing read live could ever be confirmed
      code_reader_(live),
      out_(out),
      pc_(registers.pc),
      sp_(registers.sp),
      fp_(registers.fp),
      registers_(&registers),
      follows_registers_(unwinder.followed_.registers != 0),
      notes_steps_(outer != nullptr || follows_registers_) {}

// Called once per frame of every sample: from here to run() all becomes one loop.

template <typename Word>
inline bool UnwindWalk<Word>::find_cfa(const ddprof_unwind_rule& rule, std::uint64_t& cfa) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
  const auto inner =
      static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(rule.cfa_offset & 0xffff)});
  const auto outer = static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset >> 16});
  switch (rule.cfa) {
    case DDPROF_CFA_SP:
      cfa = sp_ + offset;
      return true;
    case DDPROF_CFA_FP:
      cfa = fp_ + offset;
      return true;
    case DDPROF_CFA_DEREF_SP:
    case DDPROF_CFA_DEREF_FP:
      if (!read((rule.cfa == DDPROF_CFA_DEREF_SP ? sp_ : fp_) + inner, cfa)) return false;
      cfa += outer;
      return true;
    case DDPROF_CFA_PLT:
      cfa = sp_ + ((pc_ & 15) >= offset ? 2 * kWord : kWord);
      return true;
    default:
      break;
  }
  const unsigned number = rule.cfa - DDPROF_CFA_REGISTER;
  if (rule.cfa < DDPROF_CFA_REGISTER || number >= Registers::kCount) {
    return stop(StopReason::unsupported_rule);
  }
  return find_cfa_by_register(number, offset, cfa);
}

template <typename Word>
inline bool UnwindWalk<Word>::find_frame_pointer(const ddprof_unwind_rule& rule, Caller& caller) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.fp_offset});
  caller.fp = fp_;
  switch (rule.fp_ra & 15) {
    case DDPROF_FP_SAME:
      return true;
    case DDPROF_FP_AT_CFA:
      // Below the stack pointer: popped already, and compilers do not always say so in epilogues.
      return caller.sp + offset < sp_ || read(caller.sp + offset, caller.fp);
    case DDPROF_FP_AT_FP:
      return read(fp_ + offset, caller.fp);
    default:
      return stop(StopReason::unsupported_rule);
  }
}

template <typename Word>
inline bool UnwindWalk<Word>::find_return_address(const ddprof_unwind_rule& rule, Caller& caller) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.fp_offset});
  switch (rule.fp_ra >> 4) {
    case DDPROF_RA_AT_CFA_MINUS_8:
      caller.slot = caller.sp - kWord;
      break;
    case DDPROF_RA_AFTER_FP:
      caller.slot = caller.sp + offset + kWord;
      break;
    case DDPROF_RA_AT_FP_OFFSET:
      caller.slot = caller.sp + offset;
      break;
    case DDPROF_RA_IN_LINK_REGISTER:
      if (registers_ == nullptr) return stop(StopReason::unsupported_rule);
      caller.pc = registers_->lr;
      return true;
    case DDPROF_RA_IN_REGISTER:
      if (registers_ == nullptr || offset >= Registers::kCount) return stop(StopReason::unsupported_rule);
      caller.pc = registers_->by_dwarf_number[offset];
      return true;
    default:
      return stop(StopReason::unsupported_rule);
  }
  return read(caller.slot, caller.pc);
}

template <typename Word>
inline bool UnwindWalk<Word>::step_by_rule(const ddprof_unwind_rule& rule) {
  Caller caller;
  if (!find_cfa(rule, caller.sp)) return false;
  // Stacks grow down, so each frame lies above the one it called: no cycle is possible. Only an innermost
  // frame may have nothing of its own on the stack.
  if (caller.sp < sp_ || (caller.sp == sp_ && !is_exact_)) return stop(StopReason::bad_memory);
  if (!find_frame_pointer(rule, caller) || !find_return_address(rule, caller)) return false;
  return go_to(caller, How::by_rule);
}

template <typename Word>
inline bool UnwindWalk<Word>::step(const ddprof_unwind_rule& rule) {
  touched_live_ = false;
  switch (rule.cfa) {
    case DDPROF_CFA_GAP:
      return step_without_rule();
    case DDPROF_CFA_END:
      return stop(StopReason::complete);
    case DDPROF_CFA_SIGNAL_FRAME:
      return step_through_signal_frame();
    case DDPROF_CFA_GO_SWITCH:
      return step_to_goroutine();
    default:
      return step_by_rule(rule);
  }
}

template <typename Word>
bool UnwindWalk<Word>::run() {
  if (pc_ == 0 && sp_ == 0) {
    out_.reason = StopReason::no_registers;
    return true;
  }
  const std::uint32_t followed = unwinder_.followed_.registers;
  unwinder_.followed_.known = 0;
  unwinder_.steps_.clear();
  if (outer_ != nullptr) outer_->forget_below(sp_);
  while (true) {
    const std::uint64_t address = is_exact_ ? pc_ : pc_ - 1;
    const Unwinder::Location* location = unwinder_.find(address, modules_, kIs32Bit);
    if (out_.frames.size() == kMaxSteps) {
      stop(StopReason::depth_limit);
      break;
    }
    if (location == nullptr) {
      if (!out_.frames.empty()) {
        stop(StopReason::unknown_code);
        break;
      }
      static constexpr Unwinder::Location kNowhere{};
      location = &kNowhere;
    }
    emit(*location, address);
    if (!step(location->rule)) break;
  }
  if (unwinder_.followed_.registers != followed) return false;
  finish();
  return true;
}

// Registers other than the stack and the frame pointer. In the innermost frame they are known. In a caller it
// depends on the frames that it has called: their instructions say what a register is when they return
// (CodeWalk). Rules need not say it, which would cost every table for the sake of a few functions:
// _dl_runtime_resolve, which aligns its stack and finds it again by rbx, and assembly of libcrypto.

namespace {

constexpr int kMaxFollowed = 4;  // registers of one stack: each begins it anew

}  // namespace

template <typename Word>
bool UnwindWalk<Word>::find_cfa_by_register(unsigned number, std::uint64_t offset, std::uint64_t& cfa) {
  if (registers_ != nullptr) {
    cfa = registers_->by_dwarf_number[number] + offset;
    return true;
  }
  Unwinder::Followed& followed = unwinder_.followed_;
  const std::uint32_t bit = std::uint32_t{1} << number;
  const bool may_follow = is_x86_64() && std::popcount(followed.registers) < kMaxFollowed;
  if (may_follow) followed.registers |= bit;
  if ((followed.known & bit) == 0) return stop(StopReason::unsupported_rule);
  cfa = followed.values[number] + offset;
  // What the instructions say holds as far as they keep to the calling convention: it must lead to a caller.
  std::uint64_t return_address = 0;
  if (cfa <= sp_ || !is_copied(cfa - kWord) || !read(cfa - kWord, return_address) ||
      !is_return_address(return_address)) {
    return stop(StopReason::unsupported_rule);
  }
  return true;
}

template <typename Word>
void UnwindWalk<Word>::follow_registers(const Caller& caller, How how) {
  Unwinder::Followed& followed = unwinder_.followed_;
  std::uint32_t known = 0;
  const std::uint32_t wanted = touched_live_ ? 0 : followed.registers;
  for (std::uint32_t left = wanted; left != 0; left &= left - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(left));
    const auto value = how == How::by_signal_frame ? std::optional(interrupted_.by_dwarf_number[number])
                                                   : register_in_caller(number, caller);
    if (value) known |= std::uint32_t{1} << number;
    followed.values[number] = value.value_or(0);
  }
  followed.known = known;
}

// The value of a register of the frame at hand when it returns.
template <typename Word>
std::optional<std::uint64_t> UnwindWalk<Word>::register_in_caller(unsigned number, const Caller& caller) {
  using Where = RegisterPlace::Where;
  const Unwinder::Followed& followed = unwinder_.followed_;
  const bool is_known = registers_ != nullptr || (followed.known >> number & 1) != 0;
  const Module* module = modules_.find(Address{is_exact_ ? pc_ : pc_ - 1});
  if (module == nullptr || module->file == FileId::none) return std::nullopt;
  const CodeBytes code = code_around(*module, is_exact_ ? pc_ : pc_ - 1);
  if (code.bytes.empty()) return std::nullopt;
  const auto& [rule, place] = unwinder_.code_register(*module, code, pc_, !is_exact_, number);
  // If instructions and table do not agree on the frame, the former were not understood.
  std::uint64_t cfa = 0;
  if (rule.cfa == DDPROF_CFA_GAP || !find_cfa(rule, cfa) || cfa != caller.sp) return std::nullopt;
  if (place.where == Where::unchanged && is_known)
    return registers_ != nullptr ? registers_->by_dwarf_number[number] : followed.values[number];
  if (place.where != Where::at_sp && place.where != Where::at_fp) return std::nullopt;
  const std::uint64_t address =
      (place.where == Where::at_sp ? sp_ : fp_) + static_cast<std::uint64_t>(std::int64_t{place.offset});
  std::uint64_t value = 0;
  if (!is_copied(address) || !read(address, value)) return std::nullopt;
  return value;
}

template <typename Word>
bool UnwindWalk<Word>::step_through_signal_frame() {
  Caller caller;
  if (!restore_interrupted(caller.slot)) return false;
  caller.pc = interrupted_.pc;
  caller.sp = interrupted_.sp;
  caller.fp = interrupted_.fp;
  // The handler may have run on a stack of its own (sigaltstack): only then may the stack pointer go
  // anywhere.
  const std::uint64_t end = copy_.start.value + copy_.bytes.size();
  on_other_stack_ = on_other_stack_ || caller.sp < sp_ || (caller.sp > end && !copy_.is_truncated);
  return go_to(caller, How::by_signal_frame);
}

// Go's runtime does some of its work on the stack of the thread, and calls C there. The goroutine waits on
// its own stack, which was not copied, and the frame pointer is still that of the function that called the
// switch. Its return address lies below its frame, whose size its rule tells: the one word that is behind a
// call of this very function, at the distance that belongs to it.
template <typename Word>
bool UnwindWalk<Word>::step_to_goroutine() {
  constexpr std::uint64_t kMaxGoFrame = 4096;
  // Inside of the switch the stack may be either; without a frame pointer it began on the system stack.
  if (is_exact_ || !is_x86_64() || fp_ % kWord != 0 || fp_ <= kMaxGoFrame || has_left_system_stack_)
    return stop(StopReason::complete);
  on_other_stack_ = true;
  has_left_system_stack_ = true;
  Caller caller;
  caller.fp = fp_;
  out_.is_late = true;
  if (!read(fp_ - kMaxGoFrame, caller.pc)) return stop(live_ != nullptr ? StopReason::complete : out_.reason);
  for (std::uint64_t bytes = kWord; bytes <= kMaxGoFrame; bytes += kWord) {
    if (!read(fp_ - bytes, caller.pc) || !has_called_here(caller.pc, bytes)) continue;
    caller.slot = fp_ - bytes;
    caller.sp = caller.slot + kWord;
    return go_to(caller, How::by_rule);
  }
  return stop(StopReason::complete);
}

template <typename Word>
bool UnwindWalk<Word>::has_called_here(std::uint64_t return_address, std::uint64_t frame_bytes) {
  const Module* module = modules_.find(Address{pc_ - 1});
  if (module == nullptr || !module->contains(Address{return_address - 1})) return false;
  const Unwinder::Location* location = unwinder_.find(return_address - 1, modules_, kIs32Bit);
  return location != nullptr && location->rule.cfa == DDPROF_CFA_SP &&
         static_cast<std::uint64_t>(location->rule.cfa_offset) == frame_bytes + kWord &&
         called_before(return_address, pc_ - 1) == Called::this_one;
}

template <typename Word>
bool UnwindWalk<Word>::restore_interrupted(std::uint64_t& pc_slot) {
  switch (architecture()) {
    case Architecture::x86_64:
      pc_slot = sp_ + kContextRegisters + 16 * 8;
      return restore_x86_64();
    case Architecture::i386:
      return restore_i386(pc_slot);
    case Architecture::aarch64:
      break;
  }
  pc_slot = sp_ + kArmContextRegisters + 32 * 8;
  return restore_aarch64();
}

template <typename Word>
bool UnwindWalk<Word>::restore_x86_64() {
  const std::uint64_t context = sp_ + kContextRegisters;
  for (std::size_t i = 0; i < kContextOrder.size(); ++i) {
    if (!read(context + i * 8, interrupted_.by_dwarf_number[kContextOrder[i]])) return false;
  }
  interrupted_.fp = interrupted_.by_dwarf_number[6];
  interrupted_.sp = interrupted_.by_dwarf_number[7];
  return read(context + 16 * 8, interrupted_.pc);
}

// Where the registers are depends on the trampoline: a handler that asked for no siginfo has another frame.
template <typename Word>
bool UnwindWalk<Word>::restore_i386(std::uint64_t& pc_slot) {
  const Module* module = modules_.find(Address{pc_});
  const auto offset = module != nullptr ? find_signal_context_i386(*module, pc_) : std::nullopt;
  if (!offset) return stop(StopReason::unsupported_rule);
  const std::uint64_t context = sp_ + *offset;
  for (std::size_t i = 0; i < 8; ++i) {  // edi esi ebp esp ebx edx ecx eax
    if (!read(context + k386ContextRegisters + i * 4, interrupted_.by_dwarf_number[7 - i])) return false;
  }
  interrupted_.sp = interrupted_.by_dwarf_number[4];
  interrupted_.fp = interrupted_.by_dwarf_number[5];
  pc_slot = context + k386ContextPc;
  return read(pc_slot, interrupted_.pc);
}

template <typename Word>
bool UnwindWalk<Word>::restore_aarch64() {
  const std::uint64_t context = sp_ + kArmContextRegisters;
  for (std::size_t i = 0; i < 32; ++i) {
    if (!read(context + i * 8, interrupted_.by_dwarf_number[i])) return false;
  }
  interrupted_.fp = interrupted_.by_dwarf_number[29];
  interrupted_.lr = interrupted_.by_dwarf_number[30];
  interrupted_.sp = interrupted_.by_dwarf_number[31];
  return read(context + 32 * 8, interrupted_.pc);
}

// What to do in code that no CFI covers: JIT compiled, hand-written, built without unwind tables.

namespace {

// No frame is larger, or the frame pointer register holds something else.
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 20;

// The entry code of ld.so, from the kernel's first instruction to its jump into the program.
constexpr std::uint64_t kEntryBytes = 64;

// syscall; test %rax,%rax; jl
constexpr std::size_t kSystemCallBytes = 7;

// Longest call instruction that is looked for.
constexpr std::size_t kCallBytes = 7;

}  // namespace

template <typename Word>
bool UnwindWalk<Word>::step_without_rule() {
  const Module* module = modules_.find(Address{is_exact_ ? pc_ : pc_ - 1});
  // The entry point that the kernel jumps to: that of ld.so has no CFI to say that nothing called it.
  if (module != nullptr && module->entry != 0 && module->elf_address(pc_) - module->entry < kEntryBytes) {
    return stop(StopReason::complete);
  }
  if (module != nullptr && is_start_of_function(*module)) {
    ++out_.frames.back().address;  // no call precedes it
    return stop(StopReason::complete);
  }
  const CodeBytes code = module != nullptr ? code_around(*module, is_exact_ ? pc_ : pc_ - 1) : CodeBytes{};
  const bool has_code =
      is_x86_64() && module != nullptr && !code.bytes.empty() && module->file != FileId::none;
  const CodeRow row = has_code ? unwinder_.code_row(*module, code, pc_, !is_exact_) : CodeRow{};
  if (row.outcome == CodeRow::Outcome::rule && step_by_code(row)) return true;
  if (has_code && code.version != 0 && step_by_changed_code(*module, code.version)) return true;
  // A caller of i386 may have to find its data before it has a frame.
  if ((registers_ != nullptr || kIs32Bit) && module != nullptr) {
    // A stub around a system call keeps nothing on the stack.
    const bool is_after_call = is_x86_64() && is_after_system_call(code.before(pc_, kSystemCallBytes));
    if (is_after_call && step_by_hint(ReturnHint{0, std::nullopt, false})) return true;
    if (is_after_call && is_newborn()) return stop(StopReason::complete);
    const auto hint = find_return_hint(architecture(), code.at(pc_));
    if (hint && step_by_hint(*hint)) return true;
  }
  if (step_by_frame_pointer(module)) return true;
  if (needs_live_) return stop(StopReason::truncated_copy);
  // Nothing called what never returns, unless it is the end of a program on its way out, or its rule is not
  // known yet.
  const bool is_root =
      row.outcome == CodeRow::Outcome::never_returns && !is_exact_ && module->table != nullptr;
  return stop(is_root ? StopReason::complete : out_.reason);
}

// A return address where a function begins, behind a gap and not behind a call: nothing has returned there
// yet. The root of a stack that was made by hand, as makecontext does with __start_context.
template <typename Word>
bool UnwindWalk<Word>::is_start_of_function(const Module& module) const {
  if (is_exact_ || module.table == nullptr) return false;
  if (module.table->find(module.elf_address(pc_)) == RuleIndex::gap) return false;
  const auto before = module.code_before(pc_, kCallBytes);
  return !before.empty() && !is_after_call(architecture(), before);
}

template <typename Word>
CodeBytes UnwindWalk<Word>::code_around(const Module& module, std::uint64_t address) {
  const bool is_in_memory = module.is_generated && module.code.empty() && code_reader_ != nullptr;
  if (is_in_memory) return code_reader_->read_code(module, Address{address}, false);
  return {module.start.value, module.code};
}

// The rule is certain only as far as the code keeps to the calling convention: what it leads to is checked.
// Code that has saved its stack pointer may have taken another stack: kernels of oneDNN do.
template <typename Word>
bool UnwindWalk<Word>::step_by_code(const CodeRow& row) {
  Caller caller;
  if (!find_cfa(row.rule, caller.sp)) return false;
  const bool is_saved = row.rule.cfa == DDPROF_CFA_DEREF_SP || row.rule.cfa == DDPROF_CFA_DEREF_FP;
  const bool was_on_other_stack = on_other_stack_;
  if (is_saved && !is_within_reach(caller.sp)) on_other_stack_ = true;
  const bool is_above = caller.sp > sp_ || (on_other_stack_ && !was_on_other_stack);
  if (!is_above || !find_frame_pointer(row.rule, caller) || !find_return_address(row.rule, caller) ||
      !is_return_address(caller.pc)) {
    needs_live_ = needs_live_ || (on_other_stack_ && !was_on_other_stack);
    on_other_stack_ = was_on_other_stack;
    return false;
  }
  ++out_.frames_from_code;
  return go_to(caller, How::by_rule);
}

// Generated code may have been overwritten since it was read.
template <typename Word>
bool UnwindWalk<Word>::step_by_changed_code(const Module& module, std::uint64_t version) {
  const Address address{is_exact_ ? pc_ : pc_ - 1};
  const CodeBytes code = code_reader_->read_code(module, address, true);
  if (code.version == version || code.bytes.empty()) return false;
  const CodeRow row = unwinder_.code_row(module, code, pc_, !is_exact_);
  return row.outcome == CodeRow::Outcome::rule && step_by_code(row);
}

// A thread that has just been born in the system call of clone, which gave it 0 and a stack without a return
// address. The rows of clone end before that call, because they would be wrong in the child.
template <typename Word>
bool UnwindWalk<Word>::is_newborn() const {
  constexpr std::size_t kAccumulator = 0;
  return out_.frames.size() == 1 && registers_->by_dwarf_number[kAccumulator] == 0;
}

template <typename Word>
bool UnwindWalk<Word>::step_by_hint(const ReturnHint& hint) {
  Caller caller;
  caller.fp = fp_;
  caller.sp = sp_;
  if (hint.is_in_link_register) {
    caller.pc = registers_->lr;
  } else {
    caller.slot = sp_ + static_cast<std::uint64_t>(hint.return_offset);
    caller.sp = caller.slot + kWord;
    if (!read(caller.slot, caller.pc)) return false;
  }
  if (hint.fp_offset && !read(sp_ + static_cast<std::uint64_t>(*hint.fp_offset), caller.fp)) return false;
  return is_plausible(caller) && go_to(caller, How::by_rule);
}

template <typename Word>
bool UnwindWalk<Word>::step_by_frame_pointer(const Module* module) {
  const StopReason reason = module != nullptr ? StopReason::no_unwind_info : StopReason::unknown_code;
  // A chain of frame pointers ends with 0: Go's goroutines, and threads of runtimes that clear it at their
  // root.
  if (fp_ == 0 && by_frame_pointer_) return stop(StopReason::complete);
  if (fp_ % kWord != 0 || fp_ < sp_ || fp_ - sp_ > kMaxFrameBytes) return stop(reason);
  Caller caller;
  caller.slot = fp_ + kWord;
  caller.sp = fp_ + 2 * kWord;
  if (!read(fp_, caller.fp) || !read(caller.slot, caller.pc)) {
    return stop(out_.reason == StopReason::truncated_copy ? StopReason::truncated_copy : reason);
  }
  const bool is_root = caller.pc == 0 && registers_ == nullptr && (by_frame_pointer_ || caller.fp == 0);
  if (!is_root && !is_plausible(caller)) return stop(reason);
  return go_to(caller, How::by_frame_pointer);
}

// In code and, where that can be read, after a call.
template <typename Word>
bool UnwindWalk<Word>::is_return_address(std::uint64_t pc) {
  const Module* module = modules_.find(Address{pc - 1});
  if (module == nullptr) return false;
  return is_behind_call(*module, pc, true);
}

template <typename Word>
bool UnwindWalk<Word>::is_behind_call(const Module& module, std::uint64_t pc, bool otherwise) {
  const auto is_behind = [&](const CodeBytes& code) {
    return is_after_call(architecture(), code.before(pc, kCallBytes)) ||
           is_signal_trampoline(architecture(), code.at(pc));
  };
  const CodeBytes code = code_around(module, pc - 1);
  if (code.before(pc, kCallBytes).empty()) return otherwise;
  if (is_behind(code)) return true;
  if (code.version == 0) return false;
  const CodeBytes changed = code_reader_->read_code(module, Address{pc - 1}, true);
  return changed.version != code.version && is_behind(changed);
}

// The return address must be in code and, where that code can be read, after a call. Where it cannot, the
// caller's frame pointer has to go on upward; it need not if the caller keeps other things in that register.
template <typename Word>
bool UnwindWalk<Word>::is_plausible(const Caller& caller) {
  const std::uint64_t pc = caller.pc & unwinder_.code_address_mask_;
  const Module* module = modules_.find(Address{pc - 1});
  if (module == nullptr) module = modules_.find(Address{pc});
  if (pc == 0 || module == nullptr) return false;
  if (caller.fp == 0)
    return true;  // the root end of a chain: Go returns to the middle of goexit, where no call is
  const bool goes_up = caller.fp % kWord == 0 && caller.fp >= caller.sp;
  // Generated code may return to where no call is: an interpreter pushes the address itself.
  return is_behind_call(*module, pc, goes_up) || (module->is_generated && goes_up);
}

// Stacks that are deeper than their copy. The reasoning is in outer_frames.hpp.

namespace {

// Further above the copy there is no stack: a rule gave nonsense.
constexpr std::uint64_t kMaxStackBytes = std::uint64_t{1} << 30;
// A copy that is shorter than was asked for ends where the stack does, or at a page that was not touched
// yet: the kernel copies without loading pages. Large buffers have such pages.
constexpr std::uint64_t kMaxUntouchedBytes = std::uint64_t{1} << 20;

// One read brings many frames, and costs more than its bytes: a walk that needs a second window often needs a
// third. The words of a frame are not read in order, so a window begins a little early.
constexpr std::size_t kFirstWindowBytes = 16384;
constexpr std::size_t kWindowBytes = 65536;
constexpr std::uint64_t kWindowLead = 512;
constexpr unsigned kMaxWindows = 256;  // of one sample; a reader may give less

}  // namespace

template <typename Word>
bool UnwindWalk<Word>::is_within_reach(std::uint64_t address) const {
  const std::uint64_t end = copy_.start.value + copy_.bytes.size();
  const std::uint64_t reach = copy_.is_truncated ? kMaxStackBytes : kMaxUntouchedBytes;
  return is_copied(address) || (address + kWord > end && address - end + kWord - 1 < reach);
}

template <typename Word>
bool UnwindWalk<Word>::read_outside(std::uint64_t address, std::uint64_t& value) {
  if (!is_within_reach(address) && !on_other_stack_) return stop(StopReason::bad_memory);
  if (live_ == nullptr || !read_live(address, value))
    return stop(copy_.is_truncated || on_other_stack_ ? StopReason::truncated_copy : StopReason::bad_memory);
  touched_live_ = true;
  return true;
}

template <typename Word>
bool UnwindWalk<Word>::read_live(std::uint64_t address, std::uint64_t& value) {
  const auto is_in_window = [&] {
    const std::uint64_t offset = address - live_start_.value;
    return live_size_ >= kWord && offset <= live_size_ - kWord;
  };
  if (!is_in_window()) {
    if (++windows_ > kMaxWindows) return false;
    std::vector<std::byte>& window = unwinder_.live_bytes_;
    window.resize(windows_ == 1 ? kFirstWindowBytes : kWindowBytes);
    live_start_ = Address{std::max(address - std::min(kWindowLead, address % 4096), sp_ & ~std::uint64_t{7})};
    if (live_start_.value > address) live_start_ = Address{address};
    live_size_ = std::min(live_->read(live_start_, window), window.size());
    if (!is_in_window()) return false;
  }
  Word word;
  std::memcpy(&word, unwinder_.live_bytes_.data() + (address - live_start_.value), sizeof word);
  value = word;
  return true;
}

// Flat: it is there for two kinds of words, and what has two callers is not inlined otherwise.
template <typename Word>
[[gnu::flatten]] void UnwindWalk<Word>::note_step(const Caller& caller, How how) {
  if (follows_registers_) {
    follow_registers(caller, how);
    if (outer_ == nullptr) return;
  }
  std::vector<OuterFrame>& steps = unwinder_.steps_;
  if (!steps.empty() && caller.slot <= steps.back().slot) steps.clear();  // a signal led to another stack
  OuterFrame step{caller.slot, caller.pc, caller.sp, caller.fp, copy_.taken_at, how == How::by_signal_frame,
                  false};
  if (touched_live_) {
    step.seen_at = live_->now();
    const OuterFrame* known = outer_->find(step.slot);
    const bool is_known = known != nullptr && known->is_same_step(step) && known->seen_at <= copy_.taken_at;
    if (!is_known) has_unknown_step_ = true;
    const std::uint64_t callee = is_exact_ ? pc_ : pc_ - 1;
    if (frames_in_copy_ == kNever) {
      frames_in_copy_ = out_.frames.size();
      const bool is_large = caller.sp - sp_ >= copy_.bytes.size() / 2;
      if (is_large && how != How::by_signal_frame) crossing_ = {caller.slot, caller.pc, callee};
    } else if (!is_known && crossing_.slot != 0 && !has_unknown_outer_step_) {
      has_unknown_outer_step_ = called_before(caller.pc, callee) != Called::this_one;
    }
  } else if (frames_in_copy_ == kNever) {
    if (copied_count_ == kJunctionSteps) {
      std::rotate(copied_.begin(), copied_.begin() + 1, copied_.end());
      --copied_count_;
    }
    copied_[copied_count_++] = {caller.slot, caller.pc};
  }
  steps.push_back(step);
}

// Whether live memory still holds the return addresses that the outermost steps inside of the copy had. Asked
// after the last live read, of memory as it is then: it speaks for all that was read before.
template <typename Word>
bool UnwindWalk<Word>::holds_at_junction() {
  live_size_ = 0;
  windows_ = 0;
  for (std::size_t i = 0; i < copied_count_; ++i) {
    std::uint64_t value = 0;
    if (!read_live(copied_[i].slot, value) || (value & unwinder_.code_address_mask_) != copied_[i].value)
      return false;
  }
  return copied_count_ > 0;
}

// What the call before a return address says of the function that `callee` is in.
template <typename Word>
typename UnwindWalk<Word>::Called UnwindWalk<Word>::called_before(std::uint64_t return_address,
                                                                  std::uint64_t callee) {
  const Module* module = modules_.find(Address{return_address - 1});
  if (module == nullptr) return Called::another;
  const CodeBytes code = code_around(*module, return_address - 1);
  const auto before = code.before(return_address, kCallBytes);
  const auto target = direct_call_target(architecture(), before, return_address);
  if (!target || is_import_stub(architecture(), code.at(*target)))
    return is_after_call(architecture(), before) ? Called::unknown : Called::another;
  const Module* called = modules_.find(Address{callee});
  const bool is_same =
      called != nullptr && called->table != nullptr &&
      called->table->is_function_with(called->elf_address(*target), called->elf_address(callee));
  return is_same ? Called::this_one : Called::another;
}

// A frame that takes up the copy leaves few steps in it, or none, to compare with live memory. That is made
// up for by the call that it returns to, if that leads to the very function; or, if it does not say where it
// leads, by all that lies outward of it.
template <typename Word>
bool UnwindWalk<Word>::holds_across_large_frame() {
  if (crossing_.slot == 0) return false;
  const Called called = called_before(crossing_.return_address, crossing_.callee);
  if (called == Called::another || (called == Called::unknown && has_unknown_outer_step_)) return false;
  live_size_ = 0;
  windows_ = 0;
  std::uint64_t value = 0;
  return read_live(crossing_.slot, value) &&
         (value & unwinder_.code_address_mask_) == crossing_.return_address;
}

template <typename Word>
void UnwindWalk<Word>::finish() {
  const bool reaches_root = out_.reason == StopReason::complete;
  if (frames_in_copy_ != kNever) {
    out_.outer_frames = out_.frames.size() - frames_in_copy_;
    // Words stay below the stack pointer after a return: the junction alone proves nothing when the walk from
    // there did not find the root.
    const bool leads_on = reaches_root || out_.reason == StopReason::depth_limit;
    const bool is_confirmed =
        !has_unknown_step_ || (leads_on && (holds_at_junction() || holds_across_large_frame()));
    const bool is_kept = is_confirmed && out_.reason != StopReason::truncated_copy;
    out_.is_late = has_left_system_stack_ && !is_kept;
    if (!is_kept) cut_to_copy();
  } else if (out_.reason == StopReason::truncated_copy && outer_ != nullptr && !unwinder_.steps_.empty()) {
    append_known_callers();
  }
  if (outer_ != nullptr) outer_->record(unwinder_.steps_, reaches_root);
  if (out_.reason != StopReason::complete && !out_.frames.empty()) out_.stop_file = out_.frames.back().file;
  if (out_.frames.size() > Unwinder::kMaxFrames) leave_out_middle();
}

// What is left out is recursion: nothing else is that deep. Where it began and where it has led to is known.
template <typename Word>
void UnwindWalk<Word>::leave_out_middle() {
  if (out_.reason == StopReason::depth_limit) return out_.frames.resize(Unwinder::kMaxFrames);
  constexpr std::ptrdiff_t kEnd = Unwinder::kMaxFrames / 2;
  out_.frames.erase(out_.frames.begin() + kEnd, out_.frames.end() - kEnd);
  out_.inner_frames = kEnd;
  out_.outer_frames = std::min(out_.outer_frames, out_.frames.size());
}

template <typename Word>
void UnwindWalk<Word>::cut_to_copy() {
  out_.frames.resize(frames_in_copy_);
  out_.outer_frames = 0;
  // Where the thread has come back from its system stack since, that is as far as it can be known.
  out_.reason = has_left_system_stack_ ? StopReason::complete : StopReason::truncated_copy;
}

template <typename Word>
void UnwindWalk<Word>::append_known_callers() {
  const OuterFrames::Callers callers = outer_->callers_of(unwinder_.steps_.back());
  const auto known = callers.outermost_first;
  const std::size_t before = out_.frames.size();
  for (auto caller = known.rbegin(); caller != known.rend() && caller->return_address != 0; ++caller) {
    pc_ = caller->return_address;
    const std::uint64_t address = caller->is_interrupted ? pc_ : pc_ - 1;
    const Unwinder::Location* location = unwinder_.find(address, modules_, kIs32Bit);
    if (location == nullptr) {  // the code is gone: what was recorded is too old
      out_.frames.resize(before);
      return;
    }
    emit(*location, address);
  }
  out_.outer_frames = out_.frames.size() - before;
  if (callers.reach_root && out_.reason == StopReason::truncated_copy) out_.reason = StopReason::complete;
}

// Only what Unwinder calls: where all members are instantiated, the loop is not made of one piece.
template UnwindWalk<std::uint64_t>::UnwindWalk(Unwinder&, const Registers&, const StackCopy&,
                                               const ModuleMap&, OuterFrames*, MemoryReader*, Stack&);
template bool UnwindWalk<std::uint64_t>::run();
template UnwindWalk<std::uint32_t>::UnwindWalk(Unwinder&, const Registers&, const StackCopy&,
                                               const ModuleMap&, OuterFrames*, MemoryReader*, Stack&);
template bool UnwindWalk<std::uint32_t>::run();

}  // namespace ddprof
