#include "encode/flame_tree.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/thread_table.hpp"

namespace ddprof {

namespace {

using MissedKind = std::pair<std::string_view, std::int64_t MissedValues::*>;

// How markers begin. The last is for all others.
constexpr auto kMissedKinds = std::to_array<MissedKind>({{"[truncated", &MissedValues::truncated},
                                                         {"[unsampled", &MissedValues::unsampled},
                                                         {"[kernel", &MissedValues::kernel},
                                                         {"[", &MissedValues::lost}});

std::uint8_t missed_kind(std::string_view marker) {
  const auto* kind = std::find_if(kMissedKinds.begin(), kMissedKinds.end(),
                                  [&](const MissedKind& one) { return marker.starts_with(one.first); });
  return static_cast<std::uint8_t>(1U << (kind - kMissedKinds.begin()));
}

}  // namespace

MissedValues missed_values(const Profile& profile, const FrameTable& frames, std::size_t column) {
  std::vector<std::uint8_t> kinds(profile.locations.size());  // a bit for each
  for (std::uint32_t at = 0; at < profile.locations.size(); ++at) {
    for (const std::uint32_t frame : frames.frames(at)) {
      if (frames[frame].is_marker) kinds[at] |= missed_kind(frames[frame].name);
    }
  }
  MissedValues missed;
  for (const ProfileSample& sample : profile.samples) {
    unsigned found = 0;
    for (const std::uint32_t location : sample.locations) found |= kinds[location];
    for (std::size_t kind = 0; found >> kind != 0; ++kind) {
      std::int64_t& sum = missed.*kMissedKinds[kind].second;
      if ((found >> kind & 1U) != 0) sum = saturating_add(sum, sample.values[column]);
    }
  }
  return missed;
}

namespace {

constexpr std::uint32_t kNoCallee = 0xffffffff;

// The rest of one sample's stack, from a call on towards the leaf.
struct StackRest {
  const std::uint32_t* leaf = nullptr;
  std::int64_t value = 0;
  std::uint32_t locations = 0;       // that are left, the outermost last
  std::uint32_t calls = 0;           // that are left of the outermost one
  std::uint32_t callee = kNoCallee;  // the next frame: stacks are all over the memory
  bool is_inlined = false;           // that frame, into its caller
};

struct Branch {
  std::uint32_t node = 0;
  std::int64_t value = 0;
  std::vector<StackRest> stacks;
};

// The largest branch is split first; of equals, the first one.
struct IsSplitLater {
  bool operator()(const Branch& left, const Branch& right) const {
    return std::tie(left.value, right.node) < std::tie(right.value, left.node);
  }
};

}  // namespace

class FlameTreeBuilder {
 public:
  FlameTreeBuilder(const Profile& profile, std::size_t column, const FlameLimits& limits, FlameTree& tree)
      : profile_(profile), column_(column), limits_(limits), tree_(tree), sums_(tree.frames_.size()) {}

  void build() {
    add_processes();
    while (!branches_.empty()) {
      std::pop_heap(branches_.begin(), branches_.end(), IsSplitLater());
      Branch branch = std::move(branches_.back());
      branches_.pop_back();
      split(std::move(branch));
    }
  }

 private:
  struct Sum {
    std::int64_t value = 0, inlined = 0;
    std::uint32_t stacks = 0;
    std::uint32_t child = 0;  // which of the new branches
  };

  // Processes of one name are one, as in folded stacks.
  void add_processes() {
    const ThreadTable threads(profile_);
    std::map<std::string_view, Branch> processes;
    for (std::size_t at = 0; at < profile_.samples.size(); ++at) {
      const ProfileSample& sample = profile_.samples[at];
      if (sample.values[column_] == 0) continue;
      const SampledThread& thread = threads.threads()[threads.of(at)];
      Branch& branch = processes[threads.processes()[thread.process].name];
      StackRest rest{sample.locations.data(), sample.values[column_],
                     static_cast<std::uint32_t>(sample.locations.size())};
      enter_location(rest);
      branch.stacks.push_back(rest);
      branch.value = saturating_add(branch.value, rest.value);
    }
    if (processes.size() == 1)
      return add_root(std::move(processes.begin()->second), processes.begin()->first);
    Branch all;
    for (const auto& [name, branch] : processes) all.value = saturating_add(all.value, branch.value);
    add_root(std::move(all), processes.empty() ? "" : "all processes");
    std::vector<std::pair<std::string, Branch>> children;
    for (auto& [name, branch] : processes) {
      if (branch.value >= least_) {
        children.emplace_back(name.empty() ? "unknown process" : name, std::move(branch));
      } else {
        merge_into(tree_.nodes_[0], branch.value);
      }
    }
    std::stable_sort(children.begin(), children.end(), [](const auto& left, const auto& right) {
      return left.second.value > right.second.value;
    });
    for (auto& [name, branch] : children) add_process(name, std::move(branch), 1);
  }

  void add_root(Branch branch, std::string_view process) {
    least_ = std::max<std::int64_t>(1, branch.value / limits_.finest);
    std::string name(process);
    // By convention the first mapping is the main program's.
    if (name.empty() && !profile_.mappings.empty())
      name = base_name(profile_.text(profile_.mappings.front().path));
    add_process(name.empty() ? "all" : name, std::move(branch), 0);
  }

  void add_process(const std::string& name, Branch branch, std::uint32_t depth) {
    FlameNode node{.depth = depth, .value = branch.value};
    node.frame = static_cast<std::uint32_t>(tree_.frames_.size() + tree_.processes_.size());
    tree_.processes_.push_back(name);
    branch.node = add_node(std::move(node));
    if (depth > 0) tree_.nodes_[0].children.push_back(branch.node);
    add_branch(std::move(branch));
  }

  std::uint32_t add_node(FlameNode node) {
    tree_.nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(tree_.nodes_.size() - 1);
  }

  void add_branch(Branch branch) {
    branches_.push_back(std::move(branch));
    std::push_heap(branches_.begin(), branches_.end(), IsSplitLater());
  }

  static void merge_into(FlameNode& node, std::int64_t value) {
    ++node.merged;
    node.merged_value = saturating_add(node.merged_value, value);
  }

  void enter_location(StackRest& rest) const {
    rest.callee = kNoCallee;
    rest.is_inlined = false;
    if (rest.locations == 0) return;
    const auto frames = tree_.frames_.frames(rest.leaf[rest.locations - 1]);
    rest.calls = static_cast<std::uint32_t>(frames.size());
    rest.callee = frames.back();
  }

  void step(StackRest& rest) const {
    if (--rest.calls == 0) {
      --rest.locations;
      return enter_location(rest);
    }
    rest.callee = tree_.frames_.frames(rest.leaf[rest.locations - 1])[rest.calls - 1];
    rest.is_inlined = true;
  }

  void split(Branch branch) {
    std::vector<std::uint32_t> callees = sum_callees(branch);
    const std::uint32_t depth = tree_.nodes_[branch.node].depth + 1;
    const bool is_full = tree_.nodes_.size() >= limits_.nodes || depth >= limits_.depth;
    const auto is_shown = [&](std::uint32_t frame) { return !is_full && sums_[frame].value >= least_; };
    std::vector<Branch> children;
    for (const std::uint32_t frame : callees) {
      Sum& sum = sums_[frame];
      if (!is_shown(frame)) {
        merge_into(tree_.nodes_[branch.node], sum.value);
        continue;
      }
      sum.child = static_cast<std::uint32_t>(children.size());
      FlameNode node{.frame = frame, .depth = depth, .value = sum.value, .inlined = sum.inlined};
      children.push_back({add_node(std::move(node)), sum.value, {}});
      tree_.nodes_[branch.node].children.push_back(children.back().node);
      children.back().stacks.reserve(sum.stacks);
    }
    for (StackRest& rest : branch.stacks) {
      if (rest.callee == kNoCallee || !is_shown(rest.callee)) continue;
      std::vector<StackRest>& stacks = children[sums_[rest.callee].child].stacks;
      step(rest);
      stacks.push_back(rest);
    }
    for (const std::uint32_t frame : callees) sums_[frame] = {};
    for (Branch& child : children) add_branch(std::move(child));
  }

  // The next frames of these stacks, the one with the most first; what each has is in sums_.
  std::vector<std::uint32_t> sum_callees(const Branch& branch) {
    std::vector<std::uint32_t> callees;
    for (const StackRest& rest : branch.stacks) {
      if (rest.callee == kNoCallee) continue;
      Sum& sum = sums_[rest.callee];
      if (sum.stacks++ == 0) callees.push_back(rest.callee);
      sum.value = saturating_add(sum.value, rest.value);
      if (rest.is_inlined) sum.inlined = saturating_add(sum.inlined, rest.value);
    }
    std::sort(callees.begin(), callees.end(), [&](std::uint32_t left, std::uint32_t right) {
      const NamedFrame &a = tree_.frames_[left], &b = tree_.frames_[right];
      return std::tie(sums_[right].value, a.name, a.module) < std::tie(sums_[left].value, b.name, b.module);
    });
    return callees;
  }

  const Profile& profile_;
  std::size_t column_;
  FlameLimits limits_;
  FlameTree& tree_;
  std::vector<Sum> sums_;         // by frame, of the branch that is being split
  std::vector<Branch> branches_;  // a heap
  std::int64_t least_ = 1;
};

FlameTree::FlameTree(const Profile& profile, std::size_t column, const FlameLimits& limits)
    : frames_(profile) {
  FlameTreeBuilder(profile, column, limits, *this).build();
}

}  // namespace ddprof
