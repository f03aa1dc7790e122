#include "unwind/unwinder_walk.hpp"

#include <array>

namespace ddprof {

namespace {

// uc_mcontext.gregs of x86-64 (asm/sigcontext.h): r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip, 40 bytes into
// the ucontext, by their DWARF numbers.
constexpr std::array<std::uint8_t, 16> kContextOrder{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
constexpr std::uint64_t kContextRegisters = 40;

// rt_sigframe of aarch64: siginfo (128), ucontext up to its mcontext (176), fault address (8), x0..x30, sp,
// pc.
constexpr std::uint64_t kArmContextRegisters = 128 + 176 + 8;

}  // namespace

UnwindWalk::UnwindWalk(Unwinder& unwinder, const Registers& registers, const StackCopy& copy,
                       const ModuleMap& modules, OuterFrames* outer, MemoryReader* live, Stack& out)
    : unwinder_(unwinder),
      copy_(copy),
      modules_(modules),
      outer_(outer),
      live_(outer == nullptr ? nullptr : live),  // nothing read live could ever be confirmed
      out_(out),
      pc_(registers.pc),
      sp_(registers.sp),
      fp_(registers.fp),
      registers_(&registers) {}

// Called once per frame of every sample: from here to run() all becomes one loop.

inline bool UnwindWalk::find_cfa(const ddprof_unwind_rule& rule, std::uint64_t& cfa) {
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
      cfa = sp_ + ((pc_ & 15) >= offset ? 16 : 8);
      return true;
    default:
      break;
  }
  const unsigned number = rule.cfa - DDPROF_CFA_REGISTER;
  if (rule.cfa < DDPROF_CFA_REGISTER || number >= Registers::kCount || registers_ == nullptr) {
    return stop(StopReason::unsupported_rule);
  }
  cfa = registers_->by_dwarf_number[number] + offset;
  return true;
}

inline bool UnwindWalk::find_frame_pointer(const ddprof_unwind_rule& rule, Caller& caller) {
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

inline bool UnwindWalk::find_return_address(const ddprof_unwind_rule& rule, Caller& caller) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.fp_offset});
  switch (rule.fp_ra >> 4) {
    case DDPROF_RA_AT_CFA_MINUS_8:
      caller.slot = caller.sp - 8;
      break;
    case DDPROF_RA_AFTER_FP:
      caller.slot = caller.sp + offset + 8;
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

inline bool UnwindWalk::step_by_rule(const ddprof_unwind_rule& rule) {
  Caller caller;
  if (!find_cfa(rule, caller.sp)) return false;
  // Stacks grow down, so each frame lies above the one it called: no cycle is possible. Only an innermost
  // frame may have nothing of its own on the stack.
  if (caller.sp < sp_ || (caller.sp == sp_ && !is_exact_)) return stop(StopReason::bad_memory);
  if (!find_frame_pointer(rule, caller) || !find_return_address(rule, caller)) return false;
  return go_to(caller, How::by_rule);
}

inline bool UnwindWalk::step(const ddprof_unwind_rule& rule) {
  touched_live_ = false;
  switch (rule.cfa) {
    case DDPROF_CFA_GAP:
      return step_without_rule();
    case DDPROF_CFA_END:
      return stop(StopReason::complete);
    case DDPROF_CFA_SIGNAL_FRAME:
      return step_through_signal_frame();
    default:
      return step_by_rule(rule);
  }
}

void UnwindWalk::run() {
  if (pc_ == 0 && sp_ == 0) {
    out_.reason = StopReason::no_registers;
    return;
  }
  unwinder_.steps_.clear();
  if (outer_ != nullptr) outer_->forget_below(sp_);
  while (true) {
    const std::uint64_t address = is_exact_ ? pc_ : pc_ - 1;
    const Unwinder::Location* location = unwinder_.find(address, modules_);
    if (out_.frames.size() == Unwinder::kMaxFrames) {
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
  finish();
}

bool UnwindWalk::step_through_signal_frame() {
  Caller caller;
  const bool is_x86_64 = unwinder_.architecture_ == Architecture::x86_64;
  if (is_x86_64 ? !restore_x86_64() : !restore_aarch64()) return false;
  caller.slot = sp_ + (is_x86_64 ? kContextRegisters + 16 * 8 : kArmContextRegisters + 32 * 8);
  caller.pc = interrupted_.pc;
  caller.sp = interrupted_.sp;
  caller.fp = interrupted_.fp;
  // The handler may have run on a stack of its own (sigaltstack): only then may the stack pointer go
  // anywhere.
  const std::uint64_t end = copy_.start.value + copy_.bytes.size();
  on_other_stack_ = on_other_stack_ || caller.sp < sp_ || (caller.sp > end && !copy_.is_truncated);
  return go_to(caller, How::by_signal_frame);
}

bool UnwindWalk::restore_x86_64() {
  const std::uint64_t context = sp_ + kContextRegisters;
  for (std::size_t i = 0; i < kContextOrder.size(); ++i) {
    if (!read(context + i * 8, interrupted_.by_dwarf_number[kContextOrder[i]])) return false;
  }
  interrupted_.fp = interrupted_.by_dwarf_number[6];
  interrupted_.sp = interrupted_.by_dwarf_number[7];
  return read(context + 16 * 8, interrupted_.pc);
}

bool UnwindWalk::restore_aarch64() {
  const std::uint64_t context = sp_ + kArmContextRegisters;
  for (std::size_t i = 0; i < 32; ++i) {
    if (!read(context + i * 8, interrupted_.by_dwarf_number[i])) return false;
  }
  interrupted_.fp = interrupted_.by_dwarf_number[29];
  interrupted_.lr = interrupted_.by_dwarf_number[30];
  interrupted_.sp = interrupted_.by_dwarf_number[31];
  return read(context + 32 * 8, interrupted_.pc);
}

}  // namespace ddprof
