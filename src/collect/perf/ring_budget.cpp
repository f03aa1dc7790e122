#include "collect/perf/ring_budget.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>

#include "collect/perf/own_privileges.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kSmallestRing = 512 * 1024;
constexpr std::uint64_t kLargestRing = 8 * 1024 * 1024;
// Of all CPUs together, so that a machine with many does not make an idle profiler large.
constexpr std::uint64_t kAllRings = 32 * 1024 * 1024;
constexpr std::uint64_t kAllRingsAtHighRates = 256 * 1024 * 1024;
constexpr std::uint64_t kHighRate = 250;
// The reader looks four times a second, and a busy machine may keep it waiting as long again.
constexpr std::uint64_t kFractionOfSecond = 2;
// The kernel writes to every part of a ring in turn: a large one pushes the target's data out of the caches.
// At the highest rates losing samples would be worse.
constexpr std::uint64_t kFractionAtHighRates = 12;
constexpr std::uint64_t kHighestRate = 2'500;

std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  return left > std::numeric_limits<std::uint64_t>::max() - right ? std::numeric_limits<std::uint64_t>::max()
                                                                  : left + right;
}

}  // namespace

RingBudget ring_budget(const RingBudgetInput& input) {
  bool is_costly = input.samples_per_second > kHighRate && input.samples_per_second <= kHighestRate;
  std::uint64_t needed =
      input.samples_per_second * input.record_bytes / (is_costly ? kFractionAtHighRates : kFractionOfSecond);
  std::uint64_t all = input.samples_per_second > kHighRate ? kAllRingsAtHighRates : kAllRings;
  std::uint64_t share =
      std::bit_floor(std::clamp(all / std::max<std::size_t>(input.cpus, 1), kSmallestRing, kLargestRing));
  std::uint64_t wanted = std::min(share, std::bit_ceil(std::clamp(needed, kSmallestRing, kLargestRing)));
  RingBudget budget;
  budget.wanted_pages = std::max<std::size_t>(wanted / input.page_bytes, 1);
  budget.pages = budget.wanted_pages;
  if (input.may_lock_freely) return budget;

  // The kernel charges each ring with its control page against mlock_kb of every CPU, and what exceeds the
  // sum against RLIMIT_MEMLOCK.
  std::uint64_t cpus = std::max<std::size_t>(input.cpus, 1);
  std::uint64_t allowed = saturating_add(input.perf_mlock_kib * 1024 * cpus, input.memlock_limit_bytes);
  std::uint64_t pages_per_cpu = allowed / cpus / input.page_bytes;
  std::uint64_t data_pages = pages_per_cpu > 1 ? std::bit_floor(pages_per_cpu - 1) : 1;
  budget.pages = std::min<std::size_t>(budget.wanted_pages, data_pages);
  return budget;
}

std::uint32_t automatic_stack_bytes(RingBudgetInput input) {
  // The kernel copies what is there, which may be more than the stack: it does not know where that ends. And
  // a record takes up the whole size in the ring.
  struct Step {
    std::uint64_t highest_rate;
    std::uint32_t stack_bytes;
  };
  constexpr std::uint64_t kAnyRate = ~std::uint64_t{0};
  constexpr Step kSteps[] = {{kHighRate, 65528}, {kHighRate, 32000}, {1'000, 16384}, {kAnyRate, 8192}};
  constexpr std::uint64_t kFewestRecords = 12;
  for (const Step& step : kSteps) {
    input.record_bytes = step.stack_bytes;
    bool has_room = ring_budget(input).pages * input.page_bytes >= kFewestRecords * step.stack_bytes;
    if (input.samples_per_second <= step.highest_rate && has_room) return step.stack_bytes;
  }
  return kSteps[3].stack_bytes;
}

RingBudgetInput ring_budget_of_this_machine(std::size_t cpus) {
  RingBudgetInput input;
  input.cpus = cpus;
  input.page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream("/proc/sys/kernel/perf_event_mlock_kb") >> input.perf_mlock_kib;
  const OwnPrivileges privileges = own_privileges();
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) input.memlock_limit_bytes = limit.rlim_cur;
  input.may_lock_freely = privileges.paranoid.value_or(2) < 0 || privileges.has(CAP_IPC_LOCK);
  return input;
}

std::string lock_more_command(std::size_t ring_bytes) {
  constexpr std::size_t kBesides = 512;  // control pages, and the small rings for totals
  return fmt::format("sudo sysctl kernel.perf_event_mlock_kb={}, or ulimit -l unlimited",
                     ring_bytes / 1024 + kBesides);
}

}  // namespace ddprof
