// Stacks that are deeper than their copy. The reasoning is in outer_frames.hpp.
#include <algorithm>

#include "unwind/unwinder_walk.hpp"

namespace ddprof {

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
    const bool is_confirmed = !has_unknown_step_ || (reaches_root && holds_at_junction());
    if (!is_confirmed || out_.reason == StopReason::truncated_copy) cut_to_copy();
  } else if (out_.reason == StopReason::truncated_copy && outer_ != nullptr && !unwinder_.steps_.empty()) {
    append_known_callers();
  }
  if (outer_ != nullptr) outer_->record(unwinder_.steps_, reaches_root);
  if (out_.reason != StopReason::complete && !out_.frames.empty()) out_.stop_file = out_.frames.back().file;
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
    if (out_.frames.size() == Unwinder::kMaxFrames) {
      stop(StopReason::depth_limit);
      break;
    }
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
