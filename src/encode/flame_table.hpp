#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encode/flame_colors.hpp"
#include "encode/flame_tree.hpp"

namespace ddprof {

// A frame of the picture. All texts are clean.
struct FlameFrame {
  std::string name;
  std::size_t module = 0;  // of FlameColors
  std::string place;       // where the function begins: "shop.cpp:56"
  std::string css_class;
  bool is_process = false;
};

// The distinct frames of a tree. The picture is drawn from them, and the script gets them as a table.
class FlameTable {
 public:
  FlameTable(const Profile& profile, const FlameTree& tree, const FlameColors& colors);

  [[nodiscard]] const FlameFrame& of(const FlameNode& node) const { return frames_[index_[node.frame]]; }

  // The arrays "frames" and "nodes" of the script's data, see flamegraph_svg.hpp.
  void append_frames(std::string& out) const;
  void append_nodes(std::string& out) const;

 private:
  const FlameTree& tree_;
  std::vector<FlameFrame> frames_;
  std::vector<std::uint32_t> index_;  // by FlameNode::frame
};

}  // namespace ddprof
