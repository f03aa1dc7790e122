#include "report/hot_paths.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

// A tree of a million stacks has tens of millions of nodes, of which a report shows some dozens. So it is
// never built: the stacks are split by their next call from the root down, and only parts that are hot enough
// are split further.

namespace ddprof {

namespace {

constexpr std::size_t kMaxDepth = 40;  // of lines: deeper ones would leave no room for names

constexpr std::uint32_t kNoFrame = 0xffffffff;

// The rest of one sample's stack, from a call on towards the leaf.
struct RestOfStack {
  const std::uint32_t* leaf = nullptr;
  const std::uint32_t* behind = nullptr;  // the next location is the one in front of this
  std::uint32_t frames_left = 0;          // of the next location, the outermost last
  std::uint32_t next = kNoFrame;  // the next frame: kept here, since the stacks are all over the memory
  std::int64_t value = 0;
};

using Stacks = std::vector<RestOfStack>;

struct Branch {
  std::string_view name;
  std::int64_t size = 0;
  Stacks stacks;
};

class HotPaths {
 public:
  HotPaths(const ReportView& view, std::int64_t least)
      : view_(view), least_(least), by_frame_(view.frames.size()) {}

  std::vector<PathLine> from_root() && {
    Stacks stacks;
    stacks.reserve(view_.selected.samples.size());
    for (std::uint32_t sample : view_.selected.samples) append(stacks, sample);
    split(std::move(stacks), 0);
    return std::move(lines_);
  }

  std::vector<PathLine> from_processes() && {
    std::map<std::string_view, Branch> processes;
    for (std::uint32_t sample : view_.selected.samples) {
      const SampledThread& thread = view_.threads.threads()[view_.threads.of(sample)];
      Branch& branch = processes[view_.threads.processes()[thread.process].name];
      append(branch.stacks, sample);
      branch.size = saturating_add(branch.size, size_of(sample));
    }
    std::vector<Branch> branches;
    for (auto& [name, branch] : processes) {
      branch.name = name.empty() ? "process" : name;
      if (branch.size >= least_) branches.push_back(std::move(branch));
    }
    show(std::move(branches), 0);
    return std::move(lines_);
  }

 private:
  // The sum of the sizes of what goes through a frame, and where its stacks are collected.
  struct Sum {
    std::int64_t size = 0;
    std::uint32_t stacks = 0;
    std::uint32_t branch = 0;
  };

  [[nodiscard]] std::int64_t size_of(std::uint32_t sample) const {
    return size_of_value(view_.profile.samples[sample].values[view_.column]);
  }

  void append(Stacks& stacks, std::uint32_t at) const {
    const ProfileSample& sample = view_.profile.samples[at];
    if (sample.values[view_.column] == 0) return;
    const std::uint32_t* const leaf = sample.locations.data();
    RestOfStack rest{
        .leaf = leaf, .behind = leaf + sample.locations.size(), .value = sample.values[view_.column]};
    enter_location(rest);
    stacks.push_back(rest);
  }

  void enter_location(RestOfStack& rest) const {
    rest.next = kNoFrame;
    if (rest.behind == rest.leaf) return;
    const auto frames = view_.frames.frames(rest.behind[-1]);
    rest.frames_left = static_cast<std::uint32_t>(frames.size());
    rest.next = frames.back();
  }

  void step(RestOfStack& rest) const {
    if (--rest.frames_left != 0) {
      rest.next = view_.frames.frames(rest.behind[-1])[rest.frames_left - 1];
      return;
    }
    --rest.behind;
    enter_location(rest);
  }

  // The calls that all of these stacks make next, from the first stack's point of view.
  [[nodiscard]] std::vector<std::uint32_t> common_chain(const Stacks& stacks) const {
    std::vector<std::uint32_t> chain;
    RestOfStack first = stacks.front();
    for (; first.next != kNoFrame; step(first)) chain.push_back(first.next);
    for (RestOfStack rest : stacks) {
      std::size_t same = 0;
      while (same < chain.size() && rest.next == chain[same]) {
        step(rest);
        ++same;
      }
      chain.resize(same);
      if (chain.empty()) break;
    }
    return chain;
  }

  void split(Stacks stacks, std::size_t depth) {
    std::vector<std::uint32_t> frames;
    for (const RestOfStack& rest : stacks) {
      if (rest.next == kNoFrame) continue;
      Sum& sum = by_frame_[rest.next];
      if (sum.stacks++ == 0) frames.push_back(rest.next);
      sum.size = saturating_add(sum.size, size_of_value(rest.value));
    }
    std::vector<Branch> branches;
    for (std::uint32_t frame : frames) {
      Sum& sum = by_frame_[frame];
      if (sum.size < least_) continue;
      sum.branch = static_cast<std::uint32_t>(branches.size());
      branches.push_back({view_.frames[frame].name, sum.size, {}});
      branches.back().stacks.reserve(sum.stacks);
    }
    for (RestOfStack& rest : stacks) {
      if (rest.next == kNoFrame || by_frame_[rest.next].size < least_) continue;
      Branch& branch = branches[by_frame_[rest.next].branch];
      step(rest);
      branch.stacks.push_back(rest);
    }
    for (std::uint32_t frame : frames) by_frame_[frame] = {};
    Stacks().swap(stacks);  // below, only the branches are held
    show(std::move(branches), depth);
  }

  void show(std::vector<Branch> branches, std::size_t depth) {
    if (branches.empty()) return;
    if (depth == kMaxDepth) {
      lines_.back().is_more = true;
      return;
    }
    std::sort(branches.begin(), branches.end(), [](const Branch& left, const Branch& right) {
      return std::tie(right.size, left.name) < std::tie(left.size, right.name);
    });
    for (Branch& branch : branches) {
      PathLine line{.depth = depth, .value = 0, .names = {branch.name}};
      for (const RestOfStack& rest : branch.stacks) line.value = saturating_add(line.value, rest.value);
      const std::vector<std::uint32_t> chain = common_chain(branch.stacks);
      for (RestOfStack& rest : branch.stacks) {
        for (std::size_t count = 0; count < chain.size(); ++count) step(rest);
      }
      for (std::uint32_t frame : chain) line.names.emplace_back(view_.frames[frame].name);
      lines_.push_back(std::move(line));
      split(std::move(branch.stacks), depth + 1);
    }
  }

  const ReportView& view_;
  std::int64_t least_;
  std::vector<Sum> by_frame_;
  std::vector<PathLine> lines_;
};

}  // namespace

std::vector<PathLine> hot_paths(const ReportView& view, std::int64_t least, bool by_process) {
  HotPaths paths(view, std::max<std::int64_t>(least, 1));
  return by_process ? std::move(paths).from_processes() : std::move(paths).from_root();
}

}  // namespace ddprof
