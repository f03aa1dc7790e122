#include "cli/report_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cli/display_text.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kNoModule = "[no module]";
constexpr std::size_t kBuildIdWidth = 12;  // as git shortens: enough to compare by eye

struct ModuleFlags {
  bool functions = false, filenames = false, lines = false, inlines = false;

  void merge(const ProfileMapping& mapping) {
    functions |= mapping.has_functions;
    filenames |= mapping.has_filenames;
    lines |= mapping.has_lines;
    inlines |= mapping.has_inlines;
  }
  [[nodiscard]] std::string text() const {
    std::string words;
    const auto add = [&](bool is_there, std::string_view word) {
      if (is_there) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
    };
    add(functions, "functions");
    add(filenames, "files");
    add(lines, "lines");
    add(inlines, "inlines");
    return words;
  }
};

// By path, what the comments say of it. A path may hold ": ", so the longest known one that fits is meant.
std::string names_note(const Profile& profile, std::string_view path) {
  const std::string prefix = fmt::format("{}{}: ", kNamesComment, path);
  for (StringIndex comment : profile.comments) {
    const std::string_view text = profile.text(comment);
    if (text.starts_with(prefix)) return std::string(text.substr(prefix.size()));
  }
  return {};
}

class ModuleTable {
 public:
  explicit ModuleTable(const Profile& profile) : profile_(profile), rows_(1), flags_(1) {
    rows_[0].path = kNoModule;
    std::vector<std::uint32_t> by_mapping;
    for (const ProfileMapping& mapping : profile.mappings) by_mapping.push_back(add(mapping));
    for (const ProfileLocation& location : profile.locations) {
      ids_.add(location.mapping == kNoMapping ? 0 : by_mapping[location.mapping]);
      ids_.end_location();
    }
  }

  [[nodiscard]] std::vector<ModuleRow> rows(const ReportView& view) && {
    const auto sums = sum_stacks(profile_, view.selected.samples, ids_, rows_.size(), view.column);
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      rows_[at].sum = sums[at];
      if (at == 0) continue;
      rows_[at].names = names_note(profile_, rows_[at].path);
      if (rows_[at].names.empty()) rows_[at].names = flags_[at].text();
    }
    std::erase_if(rows_, [](const ModuleRow& row) { return row.sum.self == 0 && row.sum.total == 0; });
    return std::move(rows_);
  }

 private:
  std::uint32_t add(const ProfileMapping& mapping) {
    const std::string path(profile_.text(mapping.path)), build_id(profile_.text(mapping.build_id));
    const auto [entry, is_new] =
        index_.emplace(std::pair(path, build_id), static_cast<std::uint32_t>(rows_.size()));
    if (is_new) {
      rows_.push_back({path.empty() ? "[no path]" : path, build_id, {}, {}});
      flags_.emplace_back();
    }
    flags_[entry->second].merge(mapping);
    return entry->second;
  }

  const Profile& profile_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> index_;
  std::vector<ModuleRow> rows_;
  std::vector<ModuleFlags> flags_;
  LocationIds ids_;
};

}  // namespace

std::vector<ModuleRow> module_rows(const ReportView& view) {
  std::vector<ModuleRow> rows = ModuleTable(view.profile).rows(view);
  const auto rank = [](const ModuleRow& row) {
    return std::tuple<std::int64_t, std::int64_t, const std::string&, const std::string&>(
        -size_of_value(row.sum.self), -size_of_value(row.sum.total), row.path, row.build_id);
  };
  std::sort(rows.begin(), rows.end(),
            [&](const ModuleRow& left, const ModuleRow& right) { return rank(left) < rank(right); });
  return rows;
}

void write_modules(ReportPage& page, const ReportView& view) {
  const std::vector<ModuleRow> rows = module_rows(view);
  page.heading(fmt::format("Modules by {}", view.type));
  std::size_t path_width = display_width("module"), names_width = display_width("names from");
  for (const ModuleRow& row : rows) {
    path_width = std::max(path_width, display_width(printable(row.path)));
    names_width = std::max(names_width, display_width(printable(row.names)));
  }
  const std::size_t room = page.width() - 2 * ReportPage::kAmountWidth - 6;
  // Paths give way first: both of their ends tell what is meant.
  names_width = std::min(names_width, room / 2);
  path_width = std::min(path_width, room - names_width);
  const bool with_build_id = path_width + names_width + 2 + kBuildIdWidth <= room;
  page.line(ReportPage::amount_titles() + "  " + left_aligned("module", path_width) + "  " +
            left_aligned("names from", names_width) + (with_build_id ? "  build id" : ""));
  for (const ModuleRow& row : rows) {
    page.line(page.amount(row.sum.self) + "  " + page.amount(row.sum.total) + "  " +
              left_aligned(fit(row.path, path_width), path_width) + "  " +
              left_aligned(fit(row.names, names_width), names_width) +
              (with_build_id ? "  " + printable(row.build_id.substr(0, kBuildIdWidth)) : ""));
  }
}

}  // namespace ddprof
