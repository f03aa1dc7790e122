#include "cli/report_tree.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "profile/labels.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxDepth = 40;  // of lines: deeper ones would leave no room for names

class CallTree {
 public:
  CallTree(const Profile& profile, const FrameTable& table, std::size_t column, bool by_process)
      : table_(table) {
    nodes_.push_back({});
    for (const ProfileSample& sample : profile.samples)
      add(profile, sample, sample.values[column], by_process);
  }

  [[nodiscard]] std::vector<PathLine> lines(std::int64_t least) {
    std::vector<PathLine> lines;
    print_children(0, 0, least, lines);
    return lines;
  }

 private:
  struct Node {
    std::string name;
    std::int64_t value = 0;
    std::vector<std::uint32_t> children;
  };

  void add(const Profile& profile, const ProfileSample& sample, std::int64_t value, bool by_process) {
    std::uint32_t at = 0;
    if (by_process) {
      const std::string process = label_text(profile, sample, kProcessNameLabel);
      at = step(at, process_key(process), process, value);
    }
    for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
      const auto frames = table_.frames(*location);
      for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        at = step(at, *frame, table_[*frame].name, value);
      }
    }
  }

  // Process names are numbered behind the frames.
  std::uint32_t process_key(const std::string& process) {
    const auto number = static_cast<std::uint32_t>(table_.size() + processes_.size());
    return processes_.emplace(process, number).first->second;
  }

  std::uint32_t step(std::uint32_t parent, std::uint32_t key, const std::string& name, std::int64_t value) {
    const auto [entry, is_new] =
        index_.emplace(std::pair(parent, key), static_cast<std::uint32_t>(nodes_.size()));
    const std::uint32_t child = entry->second;
    if (is_new) {
      nodes_.push_back({name, 0, {}});
      nodes_[parent].children.push_back(child);
    }
    nodes_[child].value = saturating_add(nodes_[child].value, value);
    return child;
  }

  void print_children(std::uint32_t parent, std::size_t depth, std::int64_t least,
                      std::vector<PathLine>& lines) {
    std::vector<std::uint32_t> children = nodes_[parent].children;
    std::sort(children.begin(), children.end(), [&](std::uint32_t left, std::uint32_t right) {
      return std::tie(nodes_[right].value, nodes_[left].name) <
             std::tie(nodes_[left].value, nodes_[right].name);
    });
    for (std::uint32_t child : children) {
      if (nodes_[child].value < least) break;
      if (depth == kMaxDepth) {
        if (!lines.empty()) lines.back().is_more = true;
        return;
      }
      PathLine line{.depth = depth, .value = nodes_[child].value, .names = {nodes_[child].name}};
      std::uint32_t last = child;
      // Everything goes on into one call: the same line.
      while (nodes_[last].children.size() == 1 &&
             nodes_[nodes_[last].children[0]].value == nodes_[last].value) {
        last = nodes_[last].children[0];
        line.names.push_back(nodes_[last].name);
      }
      lines.push_back(std::move(line));
      print_children(last, depth + 1, least, lines);
    }
  }

  const FrameTable& table_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> index_;
  absl::flat_hash_map<std::string, std::uint32_t> processes_;
};

}  // namespace

std::vector<PathLine> hot_paths(const Profile& profile, const FrameTable& table, std::size_t column,
                                std::int64_t least, bool by_process) {
  return CallTree(profile, table, column, by_process).lines(std::max<std::int64_t>(least, 1));
}

}  // namespace ddprof
