#include "profile/estimates.hpp"

namespace ddprof {

std::int64_t column_sum(const AggregatedProfile& profile, std::uint32_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = column; i < profile.values.size(); i += profile.columns.size()) sum += profile.values[i];
  return sum;
}

void fold_estimates(AggregatedProfile& profile, std::uint32_t estimate, std::uint32_t exact, std::int64_t total) {
  const std::int64_t sum = column_sum(profile, estimate);
  if (sum <= 0 || total < 0) return;
  // Rounding prefix sums instead of values makes the parts add up to the whole.
  std::int64_t seen = 0;
  std::int64_t given = 0;
  for (std::size_t row = 0; row < profile.values.size(); row += profile.columns.size()) {
    seen += profile.values[row + estimate];
    __extension__ using Wide = __int128;
    auto due = static_cast<std::int64_t>(Wide{seen} * total / sum);
    profile.values[row + exact] += due - given;
    profile.values[row + estimate] = 0;
    given = due;
  }
}

}  // namespace ddprof
