#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "collect/perf/perf_event.hpp"

namespace ddprof {

// Relates the time in records to CLOCK_MONOTONIC. They are the same where the kernel takes a clock id;
// elsewhere the kernel's own clock differs by an offset that is measured once.
class PerfClock {
 public:
  PerfClock() = default;
  explicit PerfClock(std::int64_t monotonic_minus_perf) : offset_(monotonic_minus_perf) {}

  static Result<PerfClock> calibrate(const AttrFeatures& features);

  [[nodiscard]] std::uint64_t now() const;  // in the time of records
  [[nodiscard]] Nanoseconds to_monotonic(std::uint64_t perf_time) const {
    return Nanoseconds{static_cast<std::int64_t>(perf_time) + offset_};
  }

 private:
  std::int64_t offset_ = 0;
};

}  // namespace ddprof
