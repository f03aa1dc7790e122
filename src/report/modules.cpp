#include "report/modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace ddprof {

namespace {

constexpr std::string_view kNoModule = "[no module]";

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

}  // namespace ddprof
