#include "session/budget.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/read_file.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kWindow = 1s;
constexpr double kMemorySeconds = 10;  // of the average: one export is no reason to change anything
constexpr Nanoseconds kSettling = 10s;
constexpr double kRestoreBelow = 0.4;  // of the budget: twice the samples will still fit
constexpr std::uint32_t kSlowest = 1024;

constexpr Nanoseconds kBetweenBudgetChecks = 1s;
constexpr Nanoseconds kBetweenShrinks = 30s;
constexpr Nanoseconds kBetweenNotices = 10min;

struct Memory {
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;  // of it, with files or other processes
};

Memory read_memory() {
  auto text = read_file("/proc/self/statm");
  if (!text) return {};
  std::istringstream fields(*text);
  std::uint64_t size = 0;
  Memory memory;
  fields >> size >> memory.resident >> memory.shared;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {memory.resident * page, memory.shared * page};
}

}  // namespace

std::optional<std::uint32_t> CpuBudget::change_to(std::uint32_t factor, Nanoseconds now) {
  factor = std::clamp<std::uint32_t>(factor, 1, kSlowest);
  if (factor == factor_) return std::nullopt;
  average_ *= static_cast<double>(factor_) / factor;  // what it should become
  factor_ = factor;
  settled_at_ = now + kSettling;
  return factor_;
}

std::optional<std::uint32_t> CpuBudget::update(Nanoseconds now, Nanoseconds used) {
  if (!last_time_) {
    last_time_ = now;
    last_used_ = used;
    settled_at_ = now + kWindow;
  }
  const Nanoseconds passed = now - *last_time_;
  if (share_ <= 0 || passed < kWindow) return std::nullopt;
  const double usage = static_cast<double>((used - last_used_).count()) / static_cast<double>(passed.count());
  const double seconds = static_cast<double>(passed.count()) / 1e9;
  average_ += (usage - average_) * (1 - std::exp(-seconds / kMemorySeconds));
  last_time_ = now;
  last_used_ = used;
  if (average_ > share_) {
    const double times = std::min(average_ / share_, double{kSlowest});
    return change_to(factor_ * std::bit_ceil(static_cast<std::uint32_t>(std::ceil(times))), now);
  }
  if (average_ < share_ * kRestoreBelow && now >= settled_at_) return change_to(factor_ / 2, now);
  return std::nullopt;
}

std::uint64_t resident_bytes() { return read_memory().resident; }

std::uint64_t own_memory_bytes() {
  const Memory memory = read_memory();
  return memory.resident - std::min(memory.shared, memory.resident);
}

MemoryState judge_memory(std::uint64_t bytes, std::uint64_t limit) {
  if (limit == 0 || bytes < limit / 4 * 3) return MemoryState::fine;
  return bytes < limit ? MemoryState::tight : MemoryState::exceeded;
}

// Said when it begins and when it is over, but not each time where it comes and goes.
std::string Budgets::notice(std::uint32_t before, std::uint32_t factor, Nanoseconds now) {
  if (before == 1 && now >= next_notice_) {
    next_notice_ = now + kBetweenNotices;
    is_slowness_told_ = true;
    return fmt::format("--max-cpu {:.0f} is reached: one of {} samples is taken", limits_.cpu * 100, factor);
  }
  if (factor == 1 && std::exchange(is_slowness_told_, false))
    return "within --max-cpu again: every sample is taken";
  return {};
}

Budgets::Steps Budgets::check(Nanoseconds now, Nanoseconds used_cpu,
                              const std::function<std::uint64_t()>& memory) {
  Steps steps;
  if (now < next_check_) return steps;
  next_check_ = now + kBetweenBudgetChecks;
  const std::uint32_t before = cpu_.factor();
  steps.slow_down = cpu_.update(now, used_cpu);
  if (steps.slow_down) steps.notice = notice(before, *steps.slow_down, now);
  const MemoryState state = judge_memory(memory(), limits_.memory);
  if (state == MemoryState::fine) return steps;
  steps.must_shrink = now >= next_shrink_;
  steps.is_exceeded = !steps.must_shrink && state == MemoryState::exceeded;
  if (steps.must_shrink) next_shrink_ = now + kBetweenShrinks;
  return steps;
}

}  // namespace ddprof
