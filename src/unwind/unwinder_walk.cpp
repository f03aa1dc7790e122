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
      registers_(&registers),
      follows_registers_(unwinder.followed_.registers != 0),
      notes_steps_(outer != nullptr || follows_registers_) {}

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
  if (rule.cfa < DDPROF_CFA_REGISTER || number >= Registers::kCount) {
    return stop(StopReason::unsupported_rule);
  }
  return find_cfa_by_register(number, offset, cfa);
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

bool UnwindWalk::run() {
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
    const Unwinder::Location* location = unwinder_.find(address, modules_);
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

bool UnwindWalk::find_cfa_by_register(unsigned number, std::uint64_t offset, std::uint64_t& cfa) {
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
  if (cfa <= sp_ || !is_copied(cfa - 8) || !read(cfa - 8, return_address) ||
      !is_return_address(return_address)) {
    return stop(StopReason::unsupported_rule);
  }
  return true;
}

void UnwindWalk::follow_registers(const Caller& caller, How how) {
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
std::optional<std::uint64_t> UnwindWalk::register_in_caller(unsigned number, const Caller& caller) {
  using Where = RegisterPlace::Where;
  const Unwinder::Followed& followed = unwinder_.followed_;
  const bool is_known = registers_ != nullptr || (followed.known >> number & 1) != 0;
  const Module* module = modules_.find(Address{is_exact_ ? pc_ : pc_ - 1});
  if (module == nullptr || module->file == FileId::none || module->code.empty()) return std::nullopt;
  const auto& [rule, place] = unwinder_.code_register(*module, pc_, !is_exact_, number);
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

bool UnwindWalk::step_without_rule() {
  const Module* module = modules_.find(Address{is_exact_ ? pc_ : pc_ - 1});
  // The entry point that the kernel jumps to: that of ld.so has no CFI to say that nothing called it.
  if (module != nullptr && module->entry != 0 && module->elf_address(pc_) - module->entry < kEntryBytes) {
    return stop(StopReason::complete);
  }
  if (module != nullptr && is_start_of_function(*module)) {
    ++out_.frames.back().address;  // no call precedes it
    return stop(StopReason::complete);
  }
  const bool has_code =
      is_x86_64() && module != nullptr && module->file != FileId::none && !module->code.empty();
  const CodeRow row = has_code ? unwinder_.code_row(*module, pc_, !is_exact_) : CodeRow{};
  if (row.outcome == CodeRow::Outcome::rule && step_by_code(row)) return true;
  if (registers_ != nullptr && module != nullptr) {
    // A stub around a system call keeps nothing on the stack.
    const bool is_after_call =
        is_x86_64() && is_after_system_call(module->code_before(pc_, kSystemCallBytes));
    if (is_after_call && step_by_hint(ReturnHint{0, std::nullopt, false})) return true;
    if (is_after_call && is_newborn()) return stop(StopReason::complete);
    const auto hint = find_return_hint(unwinder_.architecture_, module->code_at(pc_));
    if (hint && step_by_hint(*hint)) return true;
  }
  if (step_by_frame_pointer(module)) return true;
  // Nothing called what never returns, unless it is the end of a program on its way out, or its rule is not
  // known yet.
  const bool is_root =
      row.outcome == CodeRow::Outcome::never_returns && !is_exact_ && module->table != nullptr;
  return stop(is_root ? StopReason::complete : out_.reason);
}

// A return address where a function begins, behind a gap and not behind a call: nothing has returned there
// yet. The root of a stack that was made by hand, as makecontext does with __start_context.
bool UnwindWalk::is_start_of_function(const Module& module) const {
  if (is_exact_ || module.table == nullptr) return false;
  if (module.table->find(module.elf_address(pc_)) == RuleIndex::gap) return false;
  const auto before = module.code_before(pc_, kCallBytes);
  return !before.empty() && !is_after_call(unwinder_.architecture_, before);
}

// The rule is certain only as far as the code keeps to the calling convention: what it leads to is checked.
bool UnwindWalk::step_by_code(const CodeRow& row) {
  Caller caller;
  if (!find_cfa(row.rule, caller.sp) || caller.sp <= sp_) return false;
  if (!find_frame_pointer(row.rule, caller) || !find_return_address(row.rule, caller)) return false;
  if (!is_return_address(caller.pc)) return false;
  ++out_.frames_from_code;
  return go_to(caller, How::by_rule);
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

// In code and, where that can be read, after a call.
bool UnwindWalk::is_return_address(std::uint64_t pc) const {
  const Module* module = modules_.find(Address{pc - 1});
  if (module == nullptr) return false;
  const auto before = module->code_before(pc, kCallBytes);
  return before.empty() || is_after_call(unwinder_.architecture_, before) ||
         is_signal_trampoline(unwinder_.architecture_, module->code_at(pc));
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

bool UnwindWalk::read_outside(std::uint64_t address, std::uint64_t& value) {
  const std::uint64_t end = copy_.start.value + copy_.bytes.size();
  const std::uint64_t reach = copy_.is_truncated ? kMaxStackBytes : kMaxUntouchedBytes;
  const bool is_above = address + sizeof value > end && address - end + 7 < reach;
  if (!is_above && !on_other_stack_) return stop(StopReason::bad_memory);
  if (live_ == nullptr || !read_live(address, value))
    return stop(copy_.is_truncated || on_other_stack_ ? StopReason::truncated_copy : StopReason::bad_memory);
  touched_live_ = true;
  return true;
}

bool UnwindWalk::read_live(std::uint64_t address, std::uint64_t& value) {
  const auto is_in_window = [&] {
    const std::uint64_t offset = address - live_start_.value;
    return live_size_ >= sizeof value && offset <= live_size_ - sizeof value;
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
  std::memcpy(&value, unwinder_.live_bytes_.data() + (address - live_start_.value), sizeof value);
  return true;
}

void UnwindWalk::note_step(const Caller& caller, How how) {
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
    if (frames_in_copy_ == kNever) frames_in_copy_ = out_.frames.size();
    const OuterFrame* known = outer_->find(step.slot);
    const bool is_known = known != nullptr && known->is_same_step(step) && known->seen_at <= copy_.taken_at;
    if (!is_known) has_unknown_step_ = true;
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
bool UnwindWalk::holds_at_junction() {
  live_size_ = 0;
  windows_ = 0;
  for (std::size_t i = 0; i < copied_count_; ++i) {
    std::uint64_t value = 0;
    if (!read_live(copied_[i].slot, value) || (value & unwinder_.code_address_mask_) != copied_[i].value)
      return false;
  }
  return copied_count_ > 0;
}

void UnwindWalk::finish() {
  const bool reaches_root = out_.reason == StopReason::complete;
  if (frames_in_copy_ != kNever) {
    out_.outer_frames = out_.frames.size() - frames_in_copy_;
    // Words stay below the stack pointer after a return: the junction alone proves nothing when the walk from
    // there did not find the root.
    const bool leads_on = reaches_root || out_.reason == StopReason::depth_limit;
    const bool is_confirmed = !has_unknown_step_ || (leads_on && holds_at_junction());
    if (!is_confirmed || out_.reason == StopReason::truncated_copy) cut_to_copy();
  } else if (out_.reason == StopReason::truncated_copy && outer_ != nullptr && !unwinder_.steps_.empty()) {
    append_known_callers();
  }
  if (outer_ != nullptr) outer_->record(unwinder_.steps_, reaches_root);
  if (out_.reason != StopReason::complete && !out_.frames.empty()) out_.stop_file = out_.frames.back().file;
  if (out_.frames.size() > Unwinder::kMaxFrames) leave_out_middle();
}

// What is left out is recursion: nothing else is that deep. Where it began and where it has led to is known.
void UnwindWalk::leave_out_middle() {
  if (out_.reason == StopReason::depth_limit) return out_.frames.resize(Unwinder::kMaxFrames);
  constexpr std::ptrdiff_t kEnd = Unwinder::kMaxFrames / 2;
  out_.frames.erase(out_.frames.begin() + kEnd, out_.frames.end() - kEnd);
  out_.inner_frames = kEnd;
  out_.outer_frames = std::min(out_.outer_frames, out_.frames.size());
}

void UnwindWalk::cut_to_copy() {
  out_.frames.resize(frames_in_copy_);
  out_.outer_frames = 0;
  out_.reason = StopReason::truncated_copy;
}

void UnwindWalk::append_known_callers() {
  const OuterFrames::Callers callers = outer_->callers_of(unwinder_.steps_.back());
  const auto known = callers.outermost_first;
  const std::size_t before = out_.frames.size();
  for (auto caller = known.rbegin(); caller != known.rend() && caller->return_address != 0; ++caller) {
    pc_ = caller->return_address;
    const std::uint64_t address = caller->is_interrupted ? pc_ : pc_ - 1;
    const Unwinder::Location* location = unwinder_.find(address, modules_);
    if (location == nullptr) {  // the code is gone: what was recorded is too old
      out_.frames.resize(before);
      return;
    }
    emit(*location, address);
  }
  out_.outer_frames = out_.frames.size() - before;
  if (callers.reach_root && out_.reason == StopReason::truncated_copy) out_.reason = StopReason::complete;
}

}  // namespace ddprof
