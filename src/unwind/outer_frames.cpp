#include "unwind/outer_frames.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// First of the frames (outermost first) whose slot is at or below `slot`.
template <typename Frames>
auto first_at_or_below(Frames& frames, std::uint64_t slot) {
  return std::lower_bound(frames.begin(), frames.end(), slot,
                          [](const OuterFrame& frame, std::uint64_t wanted) { return frame.slot > wanted; });
}

}  // namespace

void OuterFrames::clear() {
  frames_.clear();
  reaches_root_ = false;
}

void OuterFrames::forget_below(std::uint64_t stack_pointer) {
  while (!frames_.empty() && frames_.back().slot < stack_pointer) frames_.pop_back();
}

void OuterFrames::record(std::span<const OuterFrame> walk, bool reaches_root) {
  if (walk.empty()) return;
  auto known = first_at_or_below(frames_, walk.back().slot);
  if (reaches_root && known != frames_.begin()) known = frames_.erase(frames_.begin(), known);
  const bool keeps_outer = known != frames_.begin();
  if (!keeps_outer) reaches_root_ = reaches_root;

  // From the outermost step inward, as long as nothing has changed, what is known stays, with its earlier
  // time. Inward of the first change everything has been returned from, even where the same words are back.
  auto step = walk.rbegin();
  bool is_linked = keeps_outer && known != frames_.end() && known->is_linked;
  for (; step != walk.rend() && known != frames_.end() && known->is_same_step(*step); ++step, ++known) {
    known->is_linked = is_linked;
    is_linked = true;
  }
  if (step == walk.rbegin()) is_linked = false;

  frames_.erase(known, frames_.end());
  const auto room = static_cast<std::ptrdiff_t>(kMaxFrames - frames_.size());
  const auto end = step + std::min(room, walk.rend() - step);
  for (; step != end; ++step) {
    frames_.push_back(*step);
    frames_.back().is_linked = is_linked;
    is_linked = true;
  }
}

const OuterFrame* OuterFrames::find(std::uint64_t slot) const {
  const auto found = first_at_or_below(frames_, slot);
  return found != frames_.end() && found->slot == slot ? &*found : nullptr;
}

OuterFrames::Callers OuterFrames::callers_of(const OuterFrame& step) const {
  const OuterFrame* known = find(step.slot);
  if (known == nullptr || !known->is_same_step(step)) return {};
  const auto index = static_cast<std::size_t>(known - frames_.data());
  std::size_t outermost = index;
  while (outermost > 0 && frames_[outermost].is_linked) --outermost;
  return {std::span(frames_).subspan(outermost, index - outermost), outermost == 0 && reaches_root_};
}

}  // namespace ddprof
