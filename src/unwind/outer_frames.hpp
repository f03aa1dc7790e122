#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// One step from a callee to its caller: where the return address lies, and what the registers become.
struct OuterFrame {
  std::uint64_t slot = 0;            // address of the word that holds the return address
  std::uint64_t return_address = 0;  // as the next frame's pc
  std::uint64_t stack_pointer = 0;   // in the caller (the callee's CFA)
  std::uint64_t frame_pointer = 0;   // in the caller
  Nanoseconds seen_at{};             // when memory held this for the first time that we know of
  bool is_interrupted = false;       // through a signal frame: return_address is exact, no call precedes it
  bool is_linked = false;            // set by OuterFrames: its next outer neighbour was seen as its caller

  [[nodiscard]] bool is_same_step(const OuterFrame& other) const {
    return slot == other.slot && return_address == other.return_address &&
           stack_pointer == other.stack_pointer && frame_pointer == other.frame_pointer &&
           is_interrupted == other.is_interrupted;
  }
};

// What is known of the outer frames of one thread, for stacks that are deeper than the bytes the kernel
// copied.
//
// clang-format off
// A return address stays in its slot until the thread returns through it. Hence four kinds of evidence for a
// frame above the end of a copy that was taken at time t:
//
//   at the junction       the outermost steps inside of the copy (up to eight) are still in live memory after
//                         all else was read, and the walk outward of them found the root. Unless the thread
//                         has returned through them it has not returned through anything outward of them
//                         either: what lies there now lay there at t. (After a return the words stay until
//                         other calls write over them, so a walk that leads nowhere is not believed.)
//   by the call           the frame that crosses the end of the copy takes up half of it or more, so that there are few
//                         steps at the junction, or none. Live memory has a return address in its slot, also after all
//                         else was read, behind a direct call of the function that the frame is of, and the walk outward
//                         found the root. (Had the thread left that frame and called on, another call would be there.)
//   with live memory      the step was recorded from bytes read at or before t (by a copy, or by a live
//                         read), and live memory, read after t, still gives the very same step: same slot,
//                         return address, stack and frame pointer. This must hold for *every* outer frame up
//                         to the root. One mismatch means that the thread has returned past it in between, so
//                         everything inward of it is in doubt too, and none of it is believed.
//   without live memory   the outermost step inside of the copy equals a recorded one, and no sample since
//                         has shown the thread to be further out (forget_below): then the recorded frames
//                         outward of it are appended. No other sample is needed in between, so this is the
//                         weaker of the two.
// clang-format on
//
// The limit of all: a thread that returns and calls down again by another path, between two samples, and
// arrives with identical steps in the same slots, is not told apart. With live memory the whole outer chain
// would have to come back to the same words at the same addresses by the time of the read; without it, one
// step is enough. What is read live and not yet verified is recorded as a candidate for the thread's next
// sample, and the sample at hand ends with StopReason::truncated_copy.
class OuterFrames {
 public:
  static constexpr std::size_t kMaxFrames = 4096;  // of 48 bytes; past it the innermost are not stored

  // Recorded callers of a step.
  struct Callers {
    std::span<const OuterFrame> outermost_first;
    bool reach_root = false;  // the walk that recorded them ended at the root of the thread
  };

  // The thread's stack pointer is here: it has returned past every slot below.
  void forget_below(std::uint64_t stack_pointer);

  // A walk of this thread, leaf first, slots ascending; replaces what was known in the range that it covers.
  // Steps that are unchanged from the outermost one inward keep their earlier time. With `reaches_root`
  // nothing lies outward of the last step.
  void record(std::span<const OuterFrame> walk, bool reaches_root);

  // The step recorded for this slot.
  [[nodiscard]] const OuterFrame* find(std::uint64_t slot) const;
  // The unbroken chain outward of a step; empty unless that very step is recorded.
  [[nodiscard]] Callers callers_of(const OuterFrame& step) const;

  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  void clear();

 private:
  // Outermost first, slots descending: the busy end of a stack is the end of the vector.
  std::vector<OuterFrame> frames_;
  bool reaches_root_ = false;
};

}  // namespace ddprof
