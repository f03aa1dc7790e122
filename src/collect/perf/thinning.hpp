#pragma once

#include <cstdint>

namespace ddprof {

// Takes fewer samples, each of which stands for more. Events of a CPU are slowed down in the kernel. Events
// that tasks inherit cannot be (each copy keeps its own period, and threads swap copies), so of their samples
// each is kept with a probability, and one that is kept stands for those that are not: without a bias.
class Thinning {
 public:
  void set_factor(std::uint32_t factor, std::uint64_t now) {
    before_ = factor_;
    factor_ = factor == 0 ? 1 : factor;
    changed_at_ = now;
  }

  // What to multiply the value of a sample of a task with; 0: leave it out.
  double draw_weight() {
    if (factor_ == 1) return 1;
    state_ ^= state_ << 13U;  // xorshift, which is good enough for coins
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return (state_ >> 11U) % factor_ == 0 ? factor_ : 0;
  }

  // What to multiply the value of a sample with that a slowed event took at `time`: the kernel goes on to
  // report the period that it was opened with.
  [[nodiscard]] double weight_at(std::uint64_t time) const {
    return slowed(time < changed_at_ ? before_ : factor_);
  }
  // How many times the period a slowed event has. No power of two: eight times 1.001 ms would walk in step
  // with the tick at which the scheduler changes threads, and see each at the same point of its turn.
  [[nodiscard]] static double slowed(std::uint32_t factor) { return factor == 1 ? 1 : factor - 1.0 / 3; }

 private:
  std::uint32_t factor_ = 1;
  std::uint32_t before_ = 1;
  std::uint64_t changed_at_ = 0;
  std::uint64_t state_ = 0x9e3779b97f4a7c15U;
};

}  // namespace ddprof
