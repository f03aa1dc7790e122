#include "report/hot_paths.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

// A tree of a million stacks has tens of millions of nodes, of which a report shows some dozens. So it is
// never built: the stacks are split by their next call from the root down, and only parts that are hot enough
// are split further.

namespace ddprof {

namespace {

constexpr std::size_t kMaxDepth = 40;  // of lines: deeper ones would leave no room for names

constexpr std::uint32_t kNoFrame = 0xffffffff;

// The rest of one sample's stack, from a call on towards the leaf (or, of callers, towards the root).
struct RestOfStack {
  const std::uint32_t* locations = nullptr;  // of the sample, leaf first
  std::int32_t at = 0;                       // the location of the next frame
  std::int32_t stop = 0;                     // behind the last one
  std::uint32_t frame = 0;                   // which of the location's frames is next
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
  HotPaths(const ReportView& view, std::int64_t least, PathDirection direction = PathDirection::callees)
      : view_(view),
        least_(least),
        is_downward_(direction == PathDirection::callees),
        by_frame_(view.frames.size()) {}

  std::vector<PathLine> from_root() && {
    Stacks stacks;
    stacks.reserve(view_.selected.samples.size());
    for (std::uint32_t sample : view_.selected.samples) append(stacks, sample);
    split(std::move(stacks), 0);
    return std::move(lines_);
  }

  std::vector<PathLine> from_frame(std::uint32_t wanted) && {
    Stacks stacks;
    for (std::uint32_t sample : view_.selected.samples) append_from(stacks, sample, wanted);
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
    RestOfStack rest{.locations = sample.locations.data(),
                     .at = static_cast<std::int32_t>(sample.locations.size()) - 1,
                     .stop = -1,
                     .value = sample.values[view_.column]};
    enter_location(rest);
    stacks.push_back(rest);
  }

  // From the outermost call of a function on.
  void append_from(Stacks& stacks, std::uint32_t at, std::uint32_t wanted) const {
    const ProfileSample& sample = view_.profile.samples[at];
    if (sample.values[view_.column] == 0) return;
    const auto count = static_cast<std::int32_t>(sample.locations.size());
    for (std::int32_t position = count - 1; position >= 0; --position) {
      const auto frames = view_.frames.frames(sample.locations[static_cast<std::size_t>(position)]);
      for (std::size_t frame = frames.size(); frame-- > 0;) {
        if (frames[frame] != wanted) continue;
        stacks.push_back({.locations = sample.locations.data(),
                          .at = position,
                          .stop = is_downward_ ? -1 : count,
                          .frame = static_cast<std::uint32_t>(frame),
                          .next = wanted,
                          .value = sample.values[view_.column]});
        return;
      }
    }
  }

  [[nodiscard]] std::span<const std::uint32_t> frames_at(const RestOfStack& rest) const {
    return view_.frames.frames(rest.locations[rest.at]);
  }

  void enter_location(RestOfStack& rest) const {
    rest.next = kNoFrame;
    if (rest.at == rest.stop) return;
    const auto frames = frames_at(rest);
    rest.frame = is_downward_ ? static_cast<std::uint32_t>(frames.size()) - 1 : 0;
    rest.next = frames[rest.frame];
  }

  void step(RestOfStack& rest) const {
    const bool is_last = is_downward_ ? rest.frame == 0 : rest.frame + 1 == frames_at(rest).size();
    if (!is_last) {
      is_downward_ ? --rest.frame : ++rest.frame;
      rest.next = frames_at(rest)[rest.frame];
      return;
    }
    is_downward_ ? --rest.at : ++rest.at;
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
  bool is_downward_;
  std::vector<Sum> by_frame_;
  std::vector<PathLine> lines_;
};

// The lines of a tree in depth-first order, made fewer.
class Folding {
 public:
  explicit Folding(std::vector<PathLine> paths) : paths_(std::move(paths)) {}

  // What is dropped is smaller than all that stays, and a call is never larger than its caller: the rest is
  // still a tree.
  std::vector<PathLine> folded(std::size_t most) && {
    fold();
    while (paths_.size() > most) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max(), greatest = 0;
      for (const PathLine& line : paths_) {
        least = std::min(least, size_of_value(line.value));
        greatest = std::max(greatest, size_of_value(line.value));
      }
      if (least == greatest) {
        paths_.resize(most);  // all alike
        break;
      }
      std::erase_if(paths_, [&](const PathLine& line) { return size_of_value(line.value) == least; });
      fold();  // some have become only children
    }
    return std::move(paths_);
  }

 private:
  void fold() {
    depths_.clear();
    for (const PathLine& line : paths_) depths_.push_back(line.depth);
    std::vector<PathLine> kept;
    std::vector<std::size_t> open;    // positions in `kept` of the lines above, by their depth in it
    std::vector<std::size_t> depths;  // their depths before
    for (std::size_t at = 0; at < paths_.size(); ++at) {
      PathLine& line = paths_[at];
      while (!depths.empty() && depths.back() >= line.depth) {
        depths.pop_back();
        open.pop_back();
      }
      const std::size_t depth = line.depth;
      if (!open.empty() && shares_line(kept[open.back()], at)) {
        join(kept[open.back()], line);
        open.push_back(open.back());
      } else {
        line.depth = open.empty() ? 0 : kept[open.back()].depth + 1;
        join_repeated(line);
        open.push_back(kept.size());
        kept.push_back(std::move(line));
      }
      depths.push_back(depth);
    }
    paths_ = std::move(kept);
  }

  [[nodiscard]] bool shares_line(const PathLine& parent, std::size_t at) const {
    const PathLine& line = paths_[at];
    if (std::all_of(line.names.begin(), line.names.end(),
                    [&](std::string_view name) { return name == parent.names.back(); }))
      return true;
    constexpr double kSharesLine = 0.98;
    return is_only_child(at) && static_cast<double>(size_of_value(line.value)) >=
                                    kSharesLine * static_cast<double>(size_of_value(parent.value));
  }

  // Its siblings begin where a line of the same depth follows, or stands in front before its parent.
  [[nodiscard]] bool is_only_child(std::size_t at) const {
    const std::size_t depth = depths_[at];
    for (std::size_t next = at + 1; next < depths_.size() && depths_[next] >= depth; ++next) {
      if (depths_[next] == depth) return false;
    }
    return at > 0 && depths_[at - 1] < depth;
  }

  static void join_repeated(PathLine& line) {
    PathLine joined = line;
    joined.names.resize(1);
    line.names.erase(line.names.begin());
    join(joined, line);
    line = std::move(joined);
  }

  static void join(PathLine& parent, const PathLine& line) {
    for (std::string_view name : line.names) {
      if (name == parent.names.back()) {
        parent.is_recursive = true;
      } else {
        parent.names.push_back(name);
        parent.is_recursive = false;
      }
    }
    parent.is_more |= line.is_more;
  }

  std::vector<PathLine> paths_;
  std::vector<std::size_t> depths_;  // of paths_, before they are changed
};

}  // namespace

std::vector<PathLine> hot_paths(const ReportView& view, std::int64_t least, bool by_process) {
  HotPaths paths(view, std::max<std::int64_t>(least, 1));
  return by_process ? std::move(paths).from_processes() : std::move(paths).from_root();
}

std::vector<PathLine> paths_from(const ReportView& view, std::uint32_t frame, PathDirection direction,
                                 std::int64_t least) {
  return HotPaths(view, std::max<std::int64_t>(least, 1), direction).from_frame(frame);
}

std::vector<PathLine> folded(std::vector<PathLine> paths, std::size_t lines) {
  return Folding(std::move(paths)).folded(lines);
}

}  // namespace ddprof
