#pragma once

#include <cstdint>

#include "profile/aggregator.hpp"

namespace ddprof {

// Adds the estimates of column `estimate` to column `exact`, scaled so that they sum up to `total` to the
// nanosecond. Per-CPU sampling sees every task in proportion to its time (an unbiased estimate), while the
// sum is known exactly: the ratio estimator keeps the shares and takes the noise out of the sum.
void fold_estimates(AggregatedProfile& profile, std::uint32_t estimate, std::uint32_t exact,
                    std::int64_t total);

// Scales one column so that it sums up to `total` to the nanosecond, keeping its shares.
void scale_column(AggregatedProfile& profile, std::uint32_t column, std::int64_t total);

// The sum of one column.
std::int64_t column_sum(const AggregatedProfile& profile, std::uint32_t column);

}  // namespace ddprof
