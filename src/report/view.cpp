#include "report/view.hpp"

#include <numeric>
#include <optional>

namespace ddprof {

namespace {

Result<std::size_t> choose_column(const Profile& profile, const std::string& wanted) {
  const std::optional<std::size_t> column =
      wanted.empty() ? default_column(profile) : find_column(profile, wanted);
  if (column) return *column;
  if (profile.value_types.empty()) return make_error(ErrorCode::not_found, "the profile has no values");
  std::vector<std::string_view> types;
  for (const ValueType& type : profile.value_types) types.push_back(profile.text(type.type));
  return make_error(ErrorCode::not_found, "--sample-type {}: not in this profile, which has {}", wanted,
                    fmt::join(types, ", "));
}

}  // namespace

Result<ReportView> make_report_view(const Profile& profile, const std::string& sample_type,
                                    const ReportFilter& filter) {
  const std::size_t column = TRY(choose_column(profile, sample_type));
  const ValueType& type = profile.value_types[column];
  ReportView view{.profile = profile,
                  .column = column,
                  .type = profile.text(type.type),
                  .unit = profile.text(type.unit),
                  .frames = FrameTable(profile),
                  .threads = ThreadTable(profile)};
  view.selected = TRY(select_samples(profile, view.frames, view.threads, filter));
  view.left = sum_samples(profile, view.selected.samples, column);
  view.by_thread = sum_threads(profile, view.selected.samples, view.threads, column);
  view.whole = view.left;
  if (view.selected.samples.size() != profile.samples.size()) {
    std::vector<std::uint32_t> all(profile.samples.size());
    std::iota(all.begin(), all.end(), 0U);
    view.whole = sum_samples(profile, all, column);
  }
  return view;
}

}  // namespace ddprof
