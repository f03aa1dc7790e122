#include "collect/perf/ring_budget.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

namespace ddprof {

namespace {

constexpr std::uint64_t kSmallestRing = 512 * 1024;
constexpr std::uint64_t kLargestRing = 8 * 1024 * 1024;
constexpr std::uint64_t kFractionOfSecond = 4;  // a busy machine may keep the reader waiting that long

std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  return left > std::numeric_limits<std::uint64_t>::max() - right ? std::numeric_limits<std::uint64_t>::max()
                                                                  : left + right;
}

bool has_ipc_lock() {
  constexpr unsigned kCapIpcLock = 14;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("CapEff:\t")) continue;
    std::uint64_t capabilities = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), capabilities, 16);
    return ((capabilities >> kCapIpcLock) & 1) != 0;
  }
  return false;
}

}  // namespace

RingBudget ring_budget(const RingBudgetInput& input) {
  std::uint64_t needed = input.samples_per_second * input.record_bytes / kFractionOfSecond;
  std::uint64_t wanted = std::bit_ceil(std::clamp(needed, kSmallestRing, kLargestRing));
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

RingBudgetInput ring_budget_of_this_machine(std::size_t cpus) {
  RingBudgetInput input;
  input.cpus = cpus;
  input.page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream("/proc/sys/kernel/perf_event_mlock_kb") >> input.perf_mlock_kib;
  int paranoid = 2;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) input.memlock_limit_bytes = limit.rlim_cur;
  input.may_lock_freely = paranoid < 0 || has_ipc_lock();
  return input;
}

}  // namespace ddprof
