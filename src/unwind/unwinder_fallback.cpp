// What to do in code that no CFI covers: JIT compiled, hand-written, built without unwind tables.
#include "unwind/unwinder_walk.hpp"

namespace ddprof {

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

bool UnwindWalk::step_without_rule() {
  const Module* module = modules_.find(Address{is_exact_ ? pc_ : pc_ - 1});
  // The entry point that the kernel jumps to: that of ld.so has no CFI to say that nothing called it.
  if (module != nullptr && module->entry != 0 && module->elf_address(pc_) - module->entry < kEntryBytes) {
    return stop(StopReason::complete);
  }
  if (registers_ != nullptr && module != nullptr) {
    // A stub around a system call keeps nothing on the stack.
    const bool is_after_call =
        is_x86_64() && is_after_system_call(module->code_before(pc_, kSystemCallBytes));
    if (is_after_call && step_by_hint(ReturnHint{0, std::nullopt, false})) return true;
    if (is_after_call && is_newborn()) return stop(StopReason::complete);
    const auto hint = find_return_hint(unwinder_.architecture_, module->code_at(pc_));
    if (hint && step_by_hint(*hint)) return true;
  }
  return step_by_frame_pointer(module);
}

// A thread that has just been born in the system call of clone, which gave it 0 and a stack without a return
// address. The rows of clone end before that call, because they would be wrong in the child.
bool UnwindWalk::is_newborn() const {
  constexpr std::size_t kAccumulator = 0;
  return out_.frames.size() == 1 && registers_->by_dwarf_number[kAccumulator] == 0;
}

bool UnwindWalk::step_by_hint(const ReturnHint& hint) {
  Caller caller;
  caller.fp = fp_;
  caller.sp = sp_;
  if (hint.is_in_link_register) {
    caller.pc = registers_->lr;
  } else {
    caller.slot = sp_ + static_cast<std::uint64_t>(hint.return_offset);
    caller.sp = caller.slot + 8;
    if (!read(caller.slot, caller.pc)) return false;
  }
  if (hint.fp_offset && !read(sp_ + static_cast<std::uint64_t>(*hint.fp_offset), caller.fp)) return false;
  return is_plausible(caller) && go_to(caller, How::by_rule);
}

bool UnwindWalk::step_by_frame_pointer(const Module* module) {
  const StopReason reason = module != nullptr ? StopReason::no_unwind_info : StopReason::unknown_code;
  // A chain of frame pointers ends with 0: Go's goroutines, and threads of runtimes that clear it at their
  // root.
  if (fp_ == 0 && by_frame_pointer_) return stop(StopReason::complete);
  if (fp_ % 8 != 0 || fp_ < sp_ || fp_ - sp_ > kMaxFrameBytes) return stop(reason);
  Caller caller;
  caller.slot = fp_ + 8;
  caller.sp = fp_ + 16;
  if (!read(fp_, caller.fp) || !read(caller.slot, caller.pc)) {
    return stop(out_.reason == StopReason::truncated_copy ? StopReason::truncated_copy : reason);
  }
  const bool is_root = caller.pc == 0 && registers_ == nullptr && (by_frame_pointer_ || caller.fp == 0);
  if (!is_root && !is_plausible(caller)) return stop(reason);
  return go_to(caller, How::by_frame_pointer);
}

// The return address must be in code and, where that code can be read, after a call. Where it cannot, the
// caller's frame pointer has to go on upward; it need not if the caller keeps other things in that register.
bool UnwindWalk::is_plausible(const Caller& caller) const {
  const std::uint64_t pc = caller.pc & unwinder_.code_address_mask_;
  const Module* module = modules_.find(Address{pc - 1});
  if (module == nullptr) module = modules_.find(Address{pc});
  if (pc == 0 || module == nullptr) return false;
  if (caller.fp == 0)
    return true;  // the root end of a chain: Go returns to the middle of goexit, where no call is
  const auto before = module->code_before(pc, kCallBytes);
  if (before.empty()) return caller.fp % 8 == 0 && caller.fp >= caller.sp;
  return is_after_call(unwinder_.architecture_, before) ||
         is_signal_trampoline(unwinder_.architecture_, module->code_at(pc));
}

}  // namespace ddprof
