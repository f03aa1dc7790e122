#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "unwind/unwinder.hpp"
#include "unwind/unwinder_code.hpp"

namespace ddprof {

// One stack on its way from the leaf to the root. Internal to Unwinder, which owns the buffers. A word of 4
// bytes: of i386 code, so that 64-bit code pays nothing for it.
template <typename Word>
class UnwindWalk {
 public:
  UnwindWalk(Unwinder& unwinder, const Registers& registers, const StackCopy& copy, const ModuleMap& modules,
             OuterFrames* outer, MemoryReader* live, Stack& out);

  // False: it has found that it needs to follow another register, and is to begin again.
  bool run();

 private:
  static constexpr std::uint64_t kWord = sizeof(Word);
  static constexpr bool kIs32Bit = kWord == 4;

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
  [[gnu::cold, gnu::noinline]] bool step_to_goroutine();
  [[nodiscard]] bool has_called_here(std::uint64_t return_address, std::uint64_t frame_bytes);
  bool step_without_rule();
  bool step_by_code(const CodeRow& row);
  bool step_by_changed_code(const Module& module, std::uint64_t version);
  bool step_by_hint(const ReturnHint& hint);
  bool step_by_frame_pointer(const Module* module);
  [[nodiscard]] bool is_newborn() const;
  [[nodiscard]] bool is_start_of_function(const Module& module) const;
  [[nodiscard]] Architecture architecture() const {
    return kIs32Bit ? Architecture::i386 : unwinder_.architecture_;
  }
  [[nodiscard]] bool is_x86_64() const { return architecture() == Architecture::x86_64; }
  // The code around a run-time address of a module, from its file or from memory; may be empty.
  [[nodiscard]] CodeBytes code_around(const Module& module, std::uint64_t address);
  bool go_to(const Caller& caller, How how);

  bool find_cfa(const ddprof_unwind_rule& rule, std::uint64_t& cfa);
  // Not part of the loop, which would be slower by what they need.
  [[gnu::cold, gnu::noinline]] bool find_cfa_by_register(unsigned number, std::uint64_t offset,
                                                         std::uint64_t& cfa);
  [[gnu::cold, gnu::noinline]] void follow_registers(const Caller& caller, How how);
  [[nodiscard]] std::optional<std::uint64_t> register_in_caller(unsigned number, const Caller& caller);
  bool find_frame_pointer(const ddprof_unwind_rule& rule, Caller& caller);
  bool find_return_address(const ddprof_unwind_rule& rule, Caller& caller);
  bool restore_interrupted(std::uint64_t& pc_slot);
  bool restore_x86_64();
  bool restore_i386(std::uint64_t& pc_slot);
  bool restore_aarch64();
  [[nodiscard]] bool is_plausible(const Caller& caller);
  [[nodiscard]] bool is_return_address(std::uint64_t pc);
  // Unless its code is not known, in which case `otherwise`.
  [[nodiscard]] bool is_behind_call(const Module& module, std::uint64_t pc, bool otherwise);

  bool stop(StopReason reason) {
    out_.reason = reason;
    return false;
  }

  // A word of the stack; false, with the reason, when there is no trusting it.
  bool read(std::uint64_t address, std::uint64_t& value) {
    const std::uint64_t offset = address - copy_.start.value;
    const std::uint64_t size = copy_.bytes.size();
    if (size < kWord || offset > size - kWord) return read_outside(address, value);
    Word word;
    std::memcpy(&word, copy_.bytes.data() + offset, sizeof word);
    value = word;
    return true;
  }
  [[nodiscard]] bool is_copied(std::uint64_t address) const {
    const std::uint64_t size = copy_.bytes.size();
    return size >= kWord && address - copy_.start.value <= size - kWord;
  }
  // In the copy, or so near above it that it may be the same stack.
  [[nodiscard]] bool is_within_reach(std::uint64_t address) const;
  bool read_outside(std::uint64_t address, std::uint64_t& value);
  bool read_live(std::uint64_t address, std::uint64_t& value);

  // Deep stacks (unwinder_deep.cpp).
  void note_step(const Caller& caller, How how);
  void finish();
  void cut_to_copy();
  void leave_out_middle();
  void append_known_callers();
  [[nodiscard]] bool holds_at_junction();
  [[nodiscard]] bool holds_across_large_frame();
  enum class Called { this_one, another, unknown };
  [[nodiscard]] Called called_before(std::uint64_t return_address, std::uint64_t callee);

  void emit(const Unwinder::Location& location, std::uint64_t address);

  Unwinder& unwinder_;
  const StackCopy& copy_;
  const ModuleMap& modules_;
  OuterFrames* outer_;
  MemoryReader* live_;
  MemoryReader* code_reader_;
  Stack& out_;

  std::uint64_t pc_;
  std::uint64_t sp_;
  std::uint64_t fp_;
  const Registers*
      registers_;  // all of them, in the leaf and in a frame that a signal interrupted; else null
  Registers interrupted_;
  bool is_exact_ = true;           // pc_ is an instruction that was about to run, not a return address
  bool by_frame_pointer_ = false;  // this frame was reached through a verified frame pointer
  bool on_other_stack_ = false;  // a signal frame, or saved stack pointer, led to a stack that was not copied
  bool needs_live_ = false;      // so it would, if live memory had it still
  bool has_left_system_stack_ = false;  // of Go's runtime, for that of a goroutine
  bool follows_registers_;
  bool notes_steps_;  // for outer_, or for registers that are followed

  static constexpr std::size_t kMaxSteps = 16384;  // half a millisecond
  static constexpr std::size_t kNever = SIZE_MAX;
  std::size_t frames_in_copy_ = kNever;  // how many frames there were before the first live read that counted
  bool touched_live_ = false;            // the step at hand has read live memory
  bool has_unknown_step_ = false;        // a step from live memory was not there before the copy
  bool has_unknown_outer_step_ = false;  // the same of those behind the first one, nor called directly

  // The first step from live memory, if it leaves a frame that takes up most of the copy.
  struct Crossing {
    std::uint64_t slot = 0;  // 0: there is none
    std::uint64_t return_address = 0;
    std::uint64_t callee = 0;  // an address in the function that returns there
  };
  Crossing crossing_{};

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

template <typename Word>
inline bool UnwindWalk<Word>::go_to(const Caller& caller, How how) {
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

template <typename Word>
inline void UnwindWalk<Word>::emit(const Unwinder::Location& location, std::uint64_t address) {
  // A handler "returns" to the first byte of its trampoline: one less would name the function before it.
  const std::uint64_t shown = location.rule.cfa == DDPROF_CFA_SIGNAL_FRAME ? pc_ : address;
  out_.frames.push_back(
      {FrameKind::user, StopReason::complete, Loss::none, location.file, shown - location.bias});
}

}  // namespace ddprof
