#include "report/tables.hpp"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace ddprof {

namespace {

// Differences have values of both signs: the greatest change comes first, whichever way it went.
auto by_self_rank(const ReportView& view, const SumRow& row) {
  const NamedFrame& frame = view.frames[row.id];
  return std::tuple<std::int64_t, std::int64_t, const std::string&, const std::string&>(
      -size_of_value(row.sum.self), -size_of_value(row.sum.total), frame.name, frame.module);
}

auto by_total_rank(const ReportView& view, const SumRow& row) {
  const NamedFrame& frame = view.frames[row.id];
  return std::tuple<std::int64_t, std::int64_t, const std::string&, const std::string&>(
      -size_of_value(row.sum.total), -size_of_value(row.sum.self), frame.name, frame.module);
}

void sort_by_self(const ReportView& view, std::vector<SumRow>& rows) {
  std::sort(rows.begin(), rows.end(), [&](const SumRow& left, const SumRow& right) {
    return by_self_rank(view, left) < by_self_rank(view, right);
  });
}

void sort_by_total(const ReportView& view, std::vector<SumRow>& rows) {
  std::sort(rows.begin(), rows.end(), [&](const SumRow& left, const SumRow& right) {
    return by_total_rank(view, left) < by_total_rank(view, right);
  });
}

}  // namespace

FunctionTables function_tables(const ReportView& view) {
  FunctionTables tables;
  const std::vector<StackSum> sums =
      sum_stacks(view.profile, view.selected.samples, view.frames.ids(), view.frames.size(), view.column);
  for (std::uint32_t frame = 0; frame < sums.size(); ++frame) {
    if (sums[frame].self == 0 && sums[frame].total == 0) continue;
    (view.frames[frame].is_marker ? tables.missed : tables.by_self).push_back({frame, sums[frame]});
  }
  tables.by_total = tables.by_self;
  sort_by_self(view, tables.by_self);
  sort_by_total(view, tables.by_total);
  sort_by_total(view, tables.missed);
  return tables;
}

namespace {

class LineIds {
 public:
  explicit LineIds(const ReportView& view) : view_(view) {
    for (std::uint32_t at = 0; at < view.profile.locations.size(); ++at) add_location(at);
  }

  LineTable table() && {
    const auto sums = sum_stacks(view_.profile, view_.selected.samples, ids_, rows_.size(), view_.column);
    LineTable table;
    for (std::size_t id = 0; id < rows_.size(); ++id) rows_[id].sum = sums[id];
    table.unknown = rows_[0].sum.self;
    rows_.erase(rows_.begin());
    std::erase_if(rows_, [](const LineRow& row) { return row.sum.self == 0 && row.sum.total == 0; });
    table.rows = std::move(rows_);
    return table;
  }

 private:
  // Where nothing is known the location is the unknown place, number 0.
  void add_location(std::uint32_t at) {
    const ProfileLocation& location = view_.profile.locations[at];
    for (std::size_t line = 0; line < location.lines.size(); ++line)
      ids_.add(id_of(location.lines[line], view_.frames.frames(at)[line]));
    if (location.lines.empty()) ids_.add(0);
    ids_.end_location();
  }

  std::uint32_t id_of(const ProfileLine& line, std::uint32_t frame) {
    const StringIndex file = view_.profile.functions[line.function].file;
    if (file == 0 || line.line <= 0) return 0;
    const auto [entry, is_new] =
        index_.emplace(std::tuple(file, line.line, frame), static_cast<std::uint32_t>(rows_.size()));
    if (is_new) rows_.push_back({file, line.line, frame, {}});
    return entry->second;
  }

  const ReportView& view_;
  absl::flat_hash_map<std::tuple<StringIndex, std::int64_t, std::uint32_t>, std::uint32_t> index_;
  std::vector<LineRow> rows_{LineRow{}};
  LocationIds ids_;
};

}  // namespace

LineTable line_table(const ReportView& view) {
  LineTable table = LineIds(view).table();
  const auto rank = [&](const LineRow& row) {
    return std::tuple(-size_of_value(row.sum.self), -size_of_value(row.sum.total),
                      view.profile.text(row.file), row.line, std::string_view(view.frames[row.frame].name));
  };
  std::sort(table.rows.begin(), table.rows.end(),
            [&](const LineRow& left, const LineRow& right) { return rank(left) < rank(right); });
  return table;
}

std::string place(std::string_view file, std::int64_t line) { return fmt::format("{}:{}", file, line); }

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
