#pragma once

#include "base/clock.hpp"

namespace ddprof {

// Stands still until a test moves it.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return time; }
  [[nodiscard]] Nanoseconds unix_time() const override { return kUnixAtZero + time; }
  [[nodiscard]] Nanoseconds own_cpu() const override { return cpu; }

  static constexpr Nanoseconds kUnixAtZero = std::chrono::seconds(1'700'000'000);
  Nanoseconds time = std::chrono::seconds(1);
  Nanoseconds cpu{};
};

}  // namespace ddprof
