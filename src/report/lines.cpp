#include "report/lines.hpp"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace ddprof {

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

}  // namespace ddprof
