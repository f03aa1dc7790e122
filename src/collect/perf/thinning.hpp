#pragma once

#include <cstdint>

namespace ddprof {

// Takes fewer samples than the kernel delivers, without a bias: each is kept with a probability, and one that
// is kept stands for those that are not. Needed because the period of an event that was inherited cannot be
// changed.
class Thinning {
 public:
  void set_factor(std::uint32_t factor) { factor_ = factor == 0 ? 1 : factor; }
  [[nodiscard]] std::uint32_t factor() const { return factor_; }

  // What to multiply the value of a sample with; 0: leave it out. `period` is what the kernel took it at,
  // `base` the period without slowing down.
  double weigh(std::uint64_t period, std::uint64_t base) {
    if (factor_ == 1 || period == 0) return 1;
    const double wanted = static_cast<double>(base) * factor_;
    const double share = static_cast<double>(period) / wanted;
    if (share >= 1) return 1;  // the kernel has slowed down itself
    return draw() < share ? 1 / share : 0;
  }

 private:
  // Uniform in [0, 1): xorshift, which is good enough for coins.
  double draw() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return static_cast<double>(state_ >> 11U) * 0x1p-53;
  }

  std::uint32_t factor_ = 1;
  std::uint64_t state_ = 0x9e3779b97f4a7c15U;
};

}  // namespace ddprof
