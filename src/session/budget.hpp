#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.hpp"

namespace ddprof {

// How much CPU the profiler may use, as a share of one core: past it samples are taken more rarely, below it
// as often as was asked for.
class CpuBudget {
 public:
  explicit CpuBudget(double share) : share_(share) {}

  // With the CPU time that this process has used; the factor to slow down by when that has changed.
  std::optional<std::uint32_t> update(Nanoseconds now, Nanoseconds used);
  [[nodiscard]] std::uint32_t factor() const { return factor_; }

 private:
  std::optional<std::uint32_t> change_to(std::uint32_t factor, Nanoseconds now);

  double share_;
  double average_ = 0;  // of the last seconds
  std::uint32_t factor_ = 1;
  std::optional<Nanoseconds> last_time_;
  Nanoseconds last_used_{};
  Nanoseconds settled_at_{};  // the effect of the last change shows from here on
};

// What the profiler may use.
struct BudgetLimits {
  double cpu = 0;            // share of one core; 0: any
  std::uint64_t memory = 0;  // bytes; 0: any
};

enum class MemoryState : std::uint8_t { fine, tight, exceeded };

// What is in memory of this process, files and rings included.
std::uint64_t resident_bytes();
// What this process keeps for itself, pages of mapped files left aside: those go when memory is short.
std::uint64_t own_memory_bytes();
MemoryState judge_memory(std::uint64_t bytes, std::uint64_t limit);

// Holds a worker to its limits: says once a second what is to be done.
class Budgets {
 public:
  struct Steps {
    std::optional<std::uint32_t> slow_down;  // take one of so many samples from now on
    std::string notice;                      // for the user; empty: none
    bool must_shrink = false;                // caches are to be given up
    bool is_exceeded = false;                // that was not enough: another worker should go on
  };

  explicit Budgets(const BudgetLimits& limits) : limits_(limits), cpu_(limits.cpu) {}

  // `memory` is asked for only when it is time to.
  Steps check(Nanoseconds now, Nanoseconds used_cpu, const std::function<std::uint64_t()>& memory);
  // One of so many samples is taken.
  [[nodiscard]] std::uint32_t factor() const { return cpu_.factor(); }

 private:
  [[nodiscard]] std::string notice(std::uint32_t before, std::uint32_t factor, Nanoseconds now);

  BudgetLimits limits_;
  CpuBudget cpu_;
  Nanoseconds next_check_{}, next_shrink_{}, next_notice_{};
  bool is_slowness_told_ = false;
};

}  // namespace ddprof
