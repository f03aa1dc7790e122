#include "report/tables.hpp"

#include <algorithm>
#include <tuple>

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

}  // namespace ddprof
