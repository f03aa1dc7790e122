#pragma once

#include <cstdint>
#include <optional>

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

enum class MemoryState : std::uint8_t { fine, tight, exceeded };

// What is in memory of this process, files and rings included.
std::uint64_t resident_bytes();
// What this process keeps for itself, pages of mapped files left aside: those go when memory is short.
std::uint64_t own_memory_bytes();
MemoryState judge_memory(std::uint64_t bytes, std::uint64_t limit);

// CPU time of this process.
Nanoseconds own_cpu_time();

}  // namespace ddprof
