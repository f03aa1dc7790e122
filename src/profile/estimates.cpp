#include "profile/estimates.hpp"

#include <utility>

namespace ddprof {

std::int64_t column_sum(const AggregatedProfile& profile, std::uint32_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = column; i < profile.values.size(); i += profile.columns.size())
    sum += profile.values[i];
  return sum;
}

namespace {

// Replaces the values of column `from` by what `total` gives them in proportion, added to column `to`.
// Rounding prefix sums instead of values makes the parts add up to the whole.
void distribute(AggregatedProfile& profile, std::uint32_t from, std::uint32_t to, std::int64_t total) {
  const std::int64_t sum = column_sum(profile, from);
  if (sum <= 0 || total < 0) return;
  std::int64_t seen = 0;
  std::int64_t given = 0;
  for (std::size_t row = 0; row < profile.values.size(); row += profile.columns.size()) {
    seen += std::exchange(profile.values[row + from], 0);
    __extension__ using Wide = __int128;
    auto due = static_cast<std::int64_t>(Wide{seen} * total / sum);
    profile.values[row + to] += due - given;
    given = due;
  }
}

}  // namespace

void fold_estimates(AggregatedProfile& profile, std::uint32_t estimate, std::uint32_t exact,
                    std::int64_t total) {
  distribute(profile, estimate, exact, total);
}

void scale_column(AggregatedProfile& profile, std::uint32_t column, std::int64_t total) {
  distribute(profile, column, column, total);
}

}  // namespace ddprof
