#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "unwind/unwinder.hpp"
#include "unwind/unwinder_code.hpp"

namespace ddprof {

// One stack on its way from the leaf to the root. Internal to Unwinder, which owns the buffers.
class UnwindWalk {
 public:
  UnwindWalk(Unwinder& unwinder, const Registers& registers, const StackCopy& copy, const ModuleMap& modules,
             OuterFrames* outer, MemoryReader* live, Stack& out);

  // False: it has found that it needs to follow another register, and is to begin again.
  bool run();

 private:
  enum class How { by_rule, by_frame_pointer, by_signal_frame };

  // The registers of the caller.
  struct Caller {
    std::uint64_t slot = 0;  // where its pc lies in memory; 0: it was in a register
    std::uint64_t pc = 0;
    std::uint64_t sp = 0;
    std::uint64_t fp = 0;
  };

  // Each goes one frame outward, or says why not and returns false.
  bool step(const ddprof_unwind_rule& rule);
  bool step_by_rule(const ddprof_unwind_rule& rule);
  bool step_through_signal_frame();
  bool step_without_rule();
  bool step_by_code(const CodeRow& row);
  bool step_by_hint(const ReturnHint& hint);
  bool step_by_frame_pointer(const Module* module);
  [[nodiscard]] bool is_newborn() const;
  [[nodiscard]] bool is_start_of_function(const Module& module) const;
  [[nodiscard]] bool is_x86_64() const { return unwinder_.architecture_ == Architecture::x86_64; }
  bool go_to(const Caller& caller, How how);

  bool find_cfa(const ddprof_unwind_rule& rule, std::uint64_t& cfa);
  // Not part of the loop, which would be slower by what they need.
  [[gnu::cold, gnu::noinline]] bool find_cfa_by_register(unsigned number, std::uint64_t offset,
                                                         std::uint64_t& cfa);
  [[gnu::cold, gnu::noinline]] void follow_registers(const Caller& caller, How how);
  [[nodiscard]] std::optional<std::uint64_t> register_in_caller(unsigned number, const Caller& caller);
  bool find_frame_pointer(const ddprof_unwind_rule& rule, Caller& caller);
  bool find_return_address(const ddprof_unwind_rule& rule, Caller& caller);
  bool restore_x86_64();
  bool restore_aarch64();
  [[nodiscard]] bool is_plausible(const Caller& caller) const;
  [[nodiscard]] bool is_return_address(std::uint64_t pc) const;

  bool stop(StopReason reason) {
    out_.reason = reason;
    return false;
  }

  // A word of the stack; false, with the reason, when there is no trusting it.
  bool read(std::uint64_t address, std::uint64_t& value) {
    const std::uint64_t offset = address - copy_.start.value;
    const std::uint64_t size = copy_.bytes.size();
    if (size < sizeof value || offset > size - sizeof value) return read_outside(address, value);
    std::memcpy(&value, copy_.bytes.data() + offset, sizeof value);
    return true;
  }
  [[nodiscard]] bool is_copied(std::uint64_t address) const {
    const std::uint64_t size = copy_.bytes.size();
    return size >= sizeof address && address - copy_.start.value <= size - sizeof address;
  }
  bool read_outside(std::uint64_t address, std::uint64_t& value);
  bool read_live(std::uint64_t address, std::uint64_t& value);

  // Deep stacks (unwinder_deep.cpp).
  void note_step(const Caller& caller, How how);
  void finish();
  void cut_to_copy();
  void leave_out_middle();
  void append_known_callers();
  [[nodiscard]] bool holds_at_junction();

  void emit(const Unwinder::Location& location, std::uint64_t address);

  Unwinder& unwinder_;
  const StackCopy& copy_;
  const ModuleMap& modules_;
  OuterFrames* outer_;
  MemoryReader* live_;
  Stack& out_;

  std::uint64_t pc_;
  std::uint64_t sp_;
  std::uint64_t fp_;
  const Registers*
      registers_;  // all of them, in the leaf and in a frame that a signal interrupted; else null
  Registers interrupted_;
  bool is_exact_ = true;           // pc_ is an instruction that was about to run, not a return address
  bool by_frame_pointer_ = false;  // this frame was reached through a verified frame pointer
  bool on_other_stack_ = false;    // a signal frame led to a stack that was not copied
  bool follows_registers_;
  bool notes_steps_;  // for outer_, or for registers that are followed

  static constexpr std::size_t kMaxSteps = 16384;  // half a millisecond
  static constexpr std::size_t kNever = SIZE_MAX;
  std::size_t frames_in_copy_ = kNever;  // how many frames there were before the first live read that counted
  bool touched_live_ = false;            // the step at hand has read live memory
  bool has_unknown_step_ = false;        // a step from live memory was not there before the copy

  // The last steps that were read from the copy, oldest first.
  struct CopiedWord {
    std::uint64_t slot = 0;
    std::uint64_t value = 0;
  };
  static constexpr std::size_t kJunctionSteps = 8;
  std::array<CopiedWord, kJunctionSteps> copied_{};
  std::size_t copied_count_ = 0;
  Address live_start_;
  std::size_t live_size_ = 0;
  unsigned windows_ = 0;  // read so far
};

inline bool UnwindWalk::go_to(const Caller& caller, How how) {
  const std::uint64_t pc = caller.pc & unwinder_.code_address_mask_;
  if (notes_steps_ && caller.slot != 0) note_step({caller.slot, pc, caller.sp, caller.fp}, how);
  pc_ = pc;
  sp_ = caller.sp;
  fp_ = caller.fp;
  is_exact_ = how == How::by_signal_frame;
  by_frame_pointer_ = how == How::by_frame_pointer;
  // What a signal frame outside of the copy says about other registers is not confirmed by anything.
  registers_ = is_exact_ && !touched_live_ ? &interrupted_ : nullptr;
  return pc != 0 || stop(StopReason::complete);  // no caller to return to: how some runtimes start a thread
}

inline void UnwindWalk::emit(const Unwinder::Location& location, std::uint64_t address) {
  // A handler "returns" to the first byte of its trampoline: one less would name the function before it.
  const std::uint64_t shown = location.rule.cfa == DDPROF_CFA_SIGNAL_FRAME ? pc_ : address;
  out_.frames.push_back(
      {FrameKind::user, StopReason::complete, Loss::none, location.file, shown - location.bias});
}

}  // namespace ddprof
