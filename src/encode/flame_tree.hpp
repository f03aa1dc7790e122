#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

// What the markers of a profile say was missed, in one of its columns. A sample counts once for each kind.
struct MissedValues {
  std::int64_t lost = 0;       // no stack at all, for any reason that is not one of the others
  std::int64_t truncated = 0;  // a part of a stack
  std::int64_t unsampled = 0;  // shorter than a sampling period
  std::int64_t kernel = 0;     // in the kernel, which may not be sampled

  [[nodiscard]] bool is_any() const { return lost != 0 || truncated != 0 || unsampled != 0 || kernel != 0; }
};

MissedValues missed_values(const Profile& profile, const FrameTable& frames, std::size_t column);

// What a flame graph may hold. Calls below the least share, and those beyond the limits, are merged: a node
// says how many of its callees, with how much, it does not show.
struct FlameLimits {
  std::int64_t finest = 24'000;  // a node is at least this part of the whole: 0.05 pixels in 1,200
  std::size_t nodes = 30'000;    // no node is split once there are so many
  std::uint32_t depth = 4'096;
};

struct FlameNode {
  std::uint32_t frame = 0;  // for FlameTree::name()
  std::uint32_t depth = 0;
  std::int64_t value = 0;    // of all samples that went through it
  std::int64_t inlined = 0;  // of those in which it was inlined into its caller
  std::int64_t merged_value = 0;
  std::uint32_t merged = 0;             // callees, counted by name
  std::vector<std::uint32_t> children;  // indices of nodes, the largest first
};

// The stacks of one column as a tree. The root is the process; where there are several, they are its
// children. A tree of a million stacks has tens of millions of nodes. So it is never built: the largest node
// is split into its callees until what is left is too small.
class FlameTree {
 public:
  // Values must not be negative.
  FlameTree(const Profile& profile, std::size_t column, const FlameLimits& limits = {});

  // The root first, and every node before its children.
  [[nodiscard]] std::span<const FlameNode> nodes() const { return nodes_; }
  [[nodiscard]] const FrameTable& frames() const { return frames_; }
  // Whether it stands for processes, not for a frame of frames().
  [[nodiscard]] bool is_process(const FlameNode& node) const { return node.frame >= frames_.size(); }
  [[nodiscard]] std::string_view name(const FlameNode& node) const {
    return is_process(node) ? std::string_view(processes_[node.frame - frames_.size()])
                            : std::string_view(frames_[node.frame].name);
  }

 private:
  friend class FlameTreeBuilder;

  FrameTable frames_;
  std::vector<std::string> processes_;
  std::vector<FlameNode> nodes_;
};

}  // namespace ddprof
