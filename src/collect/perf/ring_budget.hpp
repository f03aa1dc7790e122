#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddprof {

// What decides how large the rings may and should be.
struct RingBudgetInput {
  std::size_t cpus = 1;
  std::size_t page_bytes = 4096;
  std::uint64_t samples_per_second = 99;   // of all events on one CPU
  std::uint64_t record_bytes = 33 * 1024;  // a full sample
  std::uint64_t perf_mlock_kib = 516;      // kernel.perf_event_mlock_kb: free of charge per user and CPU
  std::uint64_t memlock_limit_bytes = 0;   // RLIMIT_MEMLOCK
  bool may_lock_freely = false;            // CAP_IPC_LOCK, or perf_event_paranoid < 0
};

struct RingBudget {
  std::size_t wanted_pages = 0;  // data pages per CPU, a power of two
  std::size_t pages = 0;         // what may be locked of them, at least 1
};

// Room for 250 ms of full records, between 512 KiB and 8 MiB per CPU, 32 MiB in all (256 MiB above 250 Hz),
// within what the kernel lets this user lock.
RingBudget ring_budget(const RingBudgetInput& input);

// How much stack to copy with each sample when the user has not said: as much as the rings can take at that
// rate.
std::uint32_t automatic_stack_bytes(RingBudgetInput input);

// The same for this machine and user.
RingBudgetInput ring_budget_of_this_machine(std::size_t cpus);

// What lets this user have rings of that size on every CPU.
std::string lock_more_command(std::size_t ring_bytes);

}  // namespace ddprof
