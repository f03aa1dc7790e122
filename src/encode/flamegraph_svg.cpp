#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/display_text.hpp"
#include "encode/escaped_text.hpp"
#include "encode/flame_colors.hpp"
#include "encode/flame_tree.hpp"
#include "encode/human_value.hpp"
#include "encode/viewer_formats.hpp"

namespace ddprof {

namespace {

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

constexpr std::string_view kStyle =
#include "encode/flamegraph_style.inc"
    ;
constexpr std::string_view kScript =
#include "encode/flamegraph_script.inc"
    ;

// In pixels. The script draws with the same measures, and finds out the real widths of characters.
constexpr double kWidth = 1200, kMargin = 12, kInside = kWidth - 2 * kMargin;
constexpr int kRow = 18, kBar = 17;          // of a frame, and without the gap below it
constexpr double kColumn = 7.25;             // of the names, in a font of fixed width
constexpr double kSwatch = 15, kSpace = 18;  // of the legend
constexpr int kTitleLine = 30, kFactsLine = 50, kLegendGap = 23, kLegendRow = 19;
constexpr double kNarrowestBar = 1.5;      // frames below are drawn together
constexpr std::size_t kMostDrawn = 3'000;  // without the script, as are the next
constexpr std::uint32_t kMostRows = 40;
constexpr std::size_t kMostColumns = 120;  // of a name in a tooltip

// Of a text in the font of the legend, about, since fonts differ; the script measures it.
double pixels_of(std::string_view text) {
  double pixels = 0;
  for (const char letter : text) {
    const bool is_narrow = std::string_view(" .,:;'()[]fijlrt").find(letter) != std::string_view::npos;
    const bool is_wide = std::string_view("mwMW%+").find(letter) != std::string_view::npos;
    pixels += is_narrow ? 4.2 : is_wide ? 10.5 : 7.3;
  }
  return pixels;
}

// One of several texts in a line.
struct FlowText {
  std::string text;
  std::string swatch;  // the class of a coloured square before it, or empty
};

class FlamegraphWriter {
 public:
  FlamegraphWriter(const Profile& profile, std::size_t column)
      : profile_(profile),
        unit_(profile.text(profile.value_types[column].unit)),
        type_(clean_text(profile.text(profile.value_types[column].type))),
        tree_(profile, column),
        colors_(profile, tree_.frames(), column),
        table_(profile, tree_, colors_),
        missed_(missed_values(profile, tree_.frames(), column)),
        total_(tree_.nodes().front().value) {}

  std::string write() && {
    const int frames_top = write_legend(write_flow("facts", kFactsLine, facts()) + kLegendGap) + 10;
    const int rows = write_frames(frames_top);
    const int missed_line = frames_top + rows * kRow + 20;
    write_missed(missed_line);
    const int height = missed_line + 14;
    std::string svg = head(height);
    svg += body_;
    svg += "<script type=\"application/json\" id=\"data\">";
    append_data(svg);
    svg += "</script>\n<script><![CDATA[\n";
    svg += kScript;
    return svg + "]]></script>\n</svg>\n";
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Arguments>(arguments)...);
  }

  [[nodiscard]] std::string value(std::int64_t value) const { return human_value(value, unit_); }
  [[nodiscard]] std::string share(std::int64_t value) const { return human_percent(value, total_); }

  // "2.39 s cpu in 2.96 s (0.81 CPUs)", and when.
  [[nodiscard]] std::vector<FlowText> facts() const {
    std::string what = fmt::format("{} {}", value(total_), type_);
    if (profile_.duration_ns > 0) what += " in " + human_value(profile_.duration_ns, "nanoseconds");
    if (profile_.duration_ns > 0 && unit_ == "nanoseconds") {
      const double cpus = static_cast<double>(total_) / static_cast<double>(profile_.duration_ns);
      what += fmt::format(" ({:.2f} CPUs)", cpus);
    }
    std::vector<FlowText> texts{{what, ""}};
    if (profile_.time_ns > 0) texts.push_back({"from " + human_time(profile_.time_ns), ""});
    return texts;
  }

  [[nodiscard]] std::string head(int height) const {
    const std::string name = xml_text(fit(table_.of(tree_.nodes().front()).name, 60));
    std::string svg = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:g}" height="{1}" viewBox="0 0 {0:g} {1}" )"
        R"(role="img" aria-labelledby="title about">)"
        "\n<title id=\"title\">{2}: {3} {4}</title>\n"
        "<desc id=\"about\">Flame graph. Callers are above their callees; the width of a frame is its {4}. "
        "{5}.</desc>\n<style>\n",
        kWidth, height, name, value(total_), xml_text(type_), xml_text(facts().front().text));
    svg += kStyle;
    svg += colors_.css() + "</style>\n<defs>\n" + colors_.patterns();
    svg +=
        R"(<pattern id="narrow" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" )"
        R"(fill="#e4e4e4"/><rect width="1" height="4" fill="#b8b8b8"/></pattern>)"
        "\n</defs>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n";
    svg += fmt::format("<text class=\"name\" x=\"{:g}\" y=\"{}\">{}</text>\n", kMargin, kTitleLine, name);
    return svg;
  }

  // Texts one behind the other, in lines; the script lays them out again. Returns the last line.
  int write_flow(std::string_view id, int line, std::span<const FlowText> texts) {
    add("<g id=\"{}\">\n", id);
    double left = kMargin;
    for (const auto& [text, swatch] : texts) {
      const double width = pixels_of(text) + (swatch.empty() ? 0 : kSwatch);
      if (left > kMargin && left + width > kWidth - kMargin) {
        left = kMargin;
        line += kLegendRow;
      }
      add("<g class=\"key\" transform=\"translate({:.0f} {})\">", left, line);
      if (!swatch.empty()) add("<rect class=\"{}\" y=\"-9.5\" width=\"11\" height=\"11\" rx=\"2\"/>", swatch);
      add("<text x=\"{:g}\">{}</text></g>\n", swatch.empty() ? 0 : kSwatch, xml_text(text));
      left += width + kSpace;
    }
    add("</g>\n");
    return line;
  }

  int write_legend(int line) {
    std::vector<FlowText> texts{{fmt::format("self {} by module:", type_), ""}};
    const std::span<const FlameColors::Module> modules = colors_.modules();
    for (std::size_t at = 0; at < modules.size(); ++at) {
      const FlameColors::Module& module = modules[at];
      std::string text = fit(module.name, 40);
      if (module.modules > 1) text = fmt::format("{} {}", module.modules, text);
      texts.push_back({fmt::format("{} {}", text, share(module.self)), FlameColors::css_class(at)});
    }
    return write_flow("legend", line, texts);
  }

  void write_missed(int line) {
    std::vector<FlowText> texts;
    const std::optional<std::size_t> counts = samples_column(profile_);
    if (counts) {
      std::int64_t samples = 0;
      for (const ProfileSample& sample : profile_.samples)
        samples = saturating_add(samples, sample.values[*counts]);
      texts.push_back({fmt::format("{} samples", human_count(samples)), ""});
    }
    // Others may have missed something and not say so.
    const bool is_ours =
        std::any_of(profile_.comments.begin(), profile_.comments.end(),
                    [&](StringIndex comment) { return profile_.text(comment).starts_with("ddprof "); });
    if (!is_ours && !missed_.is_any()) {
      texts.push_back({"the profile does not say what was missed", ""});
    } else {
      const auto say = [&](std::int64_t amount, std::string_view what, std::string_view otherwise) {
        if (amount == 0 && otherwise.empty()) return;
        texts.push_back(
            {amount == 0 ? std::string(otherwise) : fmt::format("{} {}", share(amount), what), ""});
      };
      say(missed_.lost, "lost", "nothing lost");
      say(missed_.truncated, "in truncated stacks", "no stack truncated");
      say(missed_.unsampled, "unsampled", "nothing unsampled");
      say(missed_.kernel, "in the kernel, not permitted", "");
    }
    write_flow("missed", line, texts);
  }

  // As much as is wide enough, or more when there would be too many.
  [[nodiscard]] std::int64_t least_drawn() const {
    const auto narrowest = static_cast<std::int64_t>(static_cast<double>(total_) * kNarrowestBar / kInside);
    if (tree_.nodes().size() <= kMostDrawn) return std::max<std::int64_t>(narrowest, 1);
    std::vector<std::int64_t> values;
    for (const FlameNode& node : tree_.nodes()) values.push_back(node.value);
    std::nth_element(values.begin(), values.begin() + kMostDrawn, values.end(), std::greater<>());
    return std::max<std::int64_t>(narrowest, values[kMostDrawn] + 1);
  }

  // The picture. Returns how many rows it has.
  int write_frames(int top) {
    if (total_ == 0) {
      add("<text x=\"{:g}\" y=\"{}\">The profile is empty: nothing was sampled.</text>\n", kMargin, top + 13);
      return 1;
    }
    struct Place {
      std::uint32_t node;
      double left;
    };
    const double scale = kInside / static_cast<double>(total_);
    const std::int64_t least = least_drawn();
    std::uint32_t rows = 1;
    std::vector<Place> places{{0, kMargin}};
    add("<g id=\"frames\">\n");
    while (!places.empty()) {
      const Place place = places.back();
      places.pop_back();
      const FlameNode& node = tree_.nodes()[place.node];
      rows = std::max(rows, node.depth + 1);
      write_frame(node, place.left, static_cast<double>(node.value) * scale, top);
      double left = place.left;
      std::int64_t merged = node.merged, merged_value = node.merged_value;
      for (const std::uint32_t child : node.children) {
        const std::int64_t amount = tree_.nodes()[child].value;
        if (amount < least || node.depth + 1 == kMostRows) {
          ++merged;
          merged_value = saturating_add(merged_value, amount);
          continue;
        }
        places.push_back({child, left});
        left += static_cast<double>(amount) * scale;
      }
      const double width = static_cast<double>(merged_value) * scale;
      if (width < kNarrowestBar) continue;
      rows = std::max(rows, node.depth + 2);
      add("<g><title>{} {} drawn together: {}, {}</title>", human_count(merged),
          merged == 1 ? "frame" : "frames", value(merged_value), share(merged_value));
      write_bar("narrow", left, width, top + static_cast<int>(node.depth + 1) * kRow, kBar);
      add("</g>\n");
    }
    add("</g>\n");
    return static_cast<int>(rows);
  }

  void write_bar(std::string_view css_class, double left, double width, int top, int height) {
    const double gap = width > 2 ? 0.7 : 0;
    add(R"(<rect class="{}" x="{:.2f}" y="{}" width="{:.2f}" height="{}"/>)", css_class, left, top,
        width - gap, height);
  }

  void write_frame(const FlameNode& node, double left, double width, int top) {
    const FlameFrame& frame = table_.of(node);
    const int row_top = top + static_cast<int>(node.depth) * kRow;
    add("<g><title>{}\n{}, {} of {}, self {}", xml_text(fit_name(frame.name, kMostColumns)),
        value(node.value), share(node.value), xml_text(type_), value(self_of(node)));
    if (!frame.is_process) add("\n{}", xml_text(colors_.modules()[frame.module].name));
    if (!frame.place.empty()) add("\n{}", xml_text(frame.place));
    if (node.inlined > 0) add("\n{}", is_inlined(node) ? "inlined" : "inlined in some samples");
    add("</title>");
    // An inlined frame hangs together with its caller.
    const int overlap = is_inlined(node) ? 1 : 0;
    write_bar(frame.css_class, left, width, row_top - overlap, kBar + overlap);
    const auto columns = static_cast<std::size_t>(std::max(0.0, (width - 7) / kColumn));
    if (const std::string name = shown_name(node, columns); !name.empty()) {
      add(R"(<text x="{:.1f}" y="{}">{}</text>)", left + 4, row_top + 13, xml_text(name));
    }
    add("</g>\n");
  }

  [[nodiscard]] std::string shown_name(const FlameNode& node, std::size_t columns) const {
    constexpr std::size_t kLeastMarked = 8, kLeastCut = 5;
    const FlameFrame& frame = table_.of(node);
    if (columns < kLeastCut && display_width(frame.name) > columns) return {};
    if (frame.is_process) return fit(fmt::format("{} {}", frame.name, share(node.value)), columns);
    const bool is_marked = is_inlined(node) && columns >= kLeastMarked;
    return is_marked ? "↳ " + fit_short_name(frame.name, columns - 2) : fit_short_name(frame.name, columns);
  }

  // In each of its samples.
  static bool is_inlined(const FlameNode& node) { return node.inlined > 0 && node.inlined == node.value; }

  [[nodiscard]] std::int64_t self_of(const FlameNode& node) const {
    std::int64_t self = node.value - node.merged_value;
    for (const std::uint32_t child : node.children) self -= tree_.nodes()[child].value;
    return std::max<std::int64_t>(self, 0);
  }

  void append_data(std::string& out) const {
    fmt::format_to(std::back_inserter(out), "{{\"total\":{},\"type\":", total_);
    append_script_string(out, type_);
    out += ",\"unit\":";
    append_script_string(out, clean_text(unit_));
    out += ",\n\"modules\":";
    append_json_array(out, colors_.modules(), [](std::string& text, const FlameColors::Module& module) {
      append_script_string(text, module.name);
    });
    out += ",\n\"frames\":";
    table_.append_frames(out);
    out += ",\n\"nodes\":";
    table_.append_nodes(out);
    out += "}";
  }

  const Profile& profile_;
  std::string_view unit_;
  std::string type_;
  FlameTree tree_;
  FlameColors colors_;
  FlameTable table_;
  MissedValues missed_;
  std::int64_t total_;
  std::string body_;
};

}  // namespace

Result<std::string> encode_flamegraph_svg(const Profile& profile) {
  const std::optional<std::size_t> column = default_column(profile);
  if (!column) return make_error(ErrorCode::not_found, "draw profile: it has no values");
  const bool has_negative = std::any_of(profile.samples.begin(), profile.samples.end(),
                                        [&](const ProfileSample& one) { return one.values[*column] < 0; });
  if (has_negative) {
    return with_hint(make_error(ErrorCode::unsupported, "draw profile: a flame graph has no negative values"),
                     "pprof and folded stacks can hold them: choose .pb.gz or .folded");
  }
  return FlamegraphWriter(profile, *column).write();
}

}  // namespace ddprof
