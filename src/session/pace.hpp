#pragma once

#include <chrono>
#include <cstdint>

#include "base/ids.hpp"

namespace ddprof {

// How often to look at the collector. While tasks come and go, often: a fork storm has to be noticed while it
// rages, and files of a short process while it lives. Samples alone can wait, and an idle target is left
// alone.
class Pace {
 public:
  void begin(Nanoseconds now) { began_ = now; }
  // One more event, and that there are no more for now.
  void count(bool is_sample) { ++(is_sample ? new_samples_ : new_others_); }
  void update();
  [[nodiscard]] std::chrono::milliseconds wait(Nanoseconds now) const;

 private:
  Nanoseconds began_{};
  std::chrono::milliseconds pace_{1};
  std::uint64_t samples_ = 0;
  std::uint64_t new_samples_ = 0, new_others_ = 0;
};

}  // namespace ddprof
