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

void OuterFrames::record(std::span<OuterFrame> walk, bool reaches_root) {
  if (walk.empty()) return;
  auto known = first_at_or_below(frames_, walk.back().slot);
  const bool keeps_outer = !reaches_root && known != frames_.begin();
  const auto kept = static_cast<std::size_t>(keeps_outer ? known - frames_.begin() : 0);

  // From the outermost step inward, `known` keeps pace with the walk.
  bool is_linked =
      keeps_outer && known != frames_.end() && known->is_same_step(walk.back()) && known->is_linked;
  for (auto step = walk.rbegin(); step != walk.rend(); ++step) {
    while (known != frames_.end() && known->slot > step->slot) ++known;
    const bool was_known = known != frames_.end() && known->is_same_step(*step);
    if (was_known) step->seen_at = std::min(step->seen_at, known->seen_at);
    step->is_linked = is_linked;
    is_linked = true;
  }

  frames_.resize(kept);
  const std::size_t count = std::min(walk.size(), kMaxFrames - kept);
  frames_.insert(frames_.end(), walk.rbegin(), walk.rbegin() + static_cast<std::ptrdiff_t>(count));
  if (!keeps_outer) reaches_root_ = reaches_root;
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
