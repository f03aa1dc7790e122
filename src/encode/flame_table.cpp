#include "encode/flame_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>

#include "encode/json_text.hpp"
#include "encode/svg_text.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kNotInTable = 0xffffffff;

// Where each function begins, else a line of it.
std::vector<std::string> places_of_frames(const Profile& profile, const FrameTable& table) {
  std::vector<std::string> places(table.size());
  for (std::uint32_t at = 0; at < profile.locations.size(); ++at) {
    const auto frames = table.frames(at);
    const std::vector<ProfileLine>& lines = profile.locations[at].lines;
    for (std::size_t call = 0; call < lines.size(); ++call) {
      const ProfileFunction& function = profile.functions[lines[call].function];
      std::string& place = places[frames[call]];
      if (!place.empty() || function.file == 0) continue;
      const std::int64_t line = function.start_line > 0 ? function.start_line : lines[call].line;
      place = profile.text(function.file);
      if (line > 0) place += fmt::format(":{}", line);
    }
  }
  return places;
}

}  // namespace

FlameTable::FlameTable(const Profile& profile, const FlameTree& tree, const FlameColors& colors)
    : tree_(tree) {
  const std::vector<std::string> places = places_of_frames(profile, tree.frames());
  for (const FlameNode& node : tree.nodes()) {
    if (node.frame >= index_.size()) index_.resize(node.frame + 1, kNotInTable);
    if (index_[node.frame] != kNotInTable) continue;
    index_[node.frame] = static_cast<std::uint32_t>(frames_.size());
    std::string name = clean_text(tree.name(node));
    if (tree.is_process(node)) {
      frames_.push_back({std::move(name), 0, {}, "process", true});
      continue;
    }
    const std::size_t module = colors.module_of(node.frame);
    const std::size_t shade = std::hash<std::string>{}(name) % FlameColors::kShades;
    frames_.push_back(
        {std::move(name), module, clean_text(places[node.frame]), FlameColors::css_class(module, shade)});
  }
}

void FlameTable::append_frames(std::string& out) const {
  append_json_array(out, frames_, [](std::string& text, const FlameFrame& frame) {
    text += "\n[";
    append_script_string(text, frame.name);
    fmt::format_to(std::back_inserter(text), ",{},", frame.module);
    append_script_string(text, frame.place);
    fmt::format_to(std::back_inserter(text), ",\"{}\"{}]", frame.css_class, frame.is_process ? ",1" : "");
  });
}

// What a node merges is written behind its children: until then it is on the stack as the node with this bit.
void FlameTable::append_nodes(std::string& out) const {
  constexpr std::uint32_t kMergedBit = 0x80000000;
  std::vector<std::uint32_t> rest{0};
  std::string_view comma;
  out += '[';
  while (!rest.empty()) {
    const std::uint32_t number = rest.back();
    rest.pop_back();
    const FlameNode& node = tree_.nodes()[number & ~kMergedBit];
    if ((number & kMergedBit) != 0) {
      fmt::format_to(std::back_inserter(out), ",\n{},-1,{},{}", node.depth + 1, node.merged_value,
                     node.merged);
      continue;
    }
    const int inlined = node.inlined == 0 ? 0 : node.inlined == node.value ? 1 : 2;
    fmt::format_to(std::back_inserter(out), "{}\n{},{},{},{}", comma, node.depth, index_[node.frame],
                   node.value, inlined);
    comma = ",";
    if (node.merged > 0) rest.push_back(number | kMergedBit);
    rest.insert(rest.end(), node.children.rbegin(), node.children.rend());
  }
  out += ']';
}

}  // namespace ddprof
