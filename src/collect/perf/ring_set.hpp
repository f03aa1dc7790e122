#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/perf/perf_event.hpp"
#include "collect/perf/perf_ring.hpp"

namespace ddprof {

// Parses the kernel's notation for sets of CPUs: "0-3,8".
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// CPUs that are online now.
Result<std::vector<int>> online_cpus();

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
  std::size_t wanted_pages = 0;                  // data pages per CPU, a power of two
  std::size_t pages = 0;                         // what may be locked of them, at least 1
  std::optional<std::size_t> watermark_bytes{};  // at which the reader is woken; none: a quarter of the ring
};

// Room for 500 ms of full records, between 512 KiB and 8 MiB per CPU, 32 MiB in all (256 MiB above 250 Hz),
// within what the kernel lets this user lock.
RingBudget ring_budget(const RingBudgetInput& input);

// How much stack to copy with each sample when the user has not said: as much as the rings can take at that
// rate.
std::uint32_t automatic_stack_bytes(RingBudgetInput input);

// The same for this machine and user.
RingBudgetInput ring_budget_of_this_machine(std::size_t cpus);

// What lets this user have rings of that size on every CPU.
std::string lock_more_command(std::size_t ring_bytes);

// One ring per CPU. Each belongs to a silent event of the calling thread, and real events are redirected into
// it, so that events may come and go (threads end, modes change) without touching the rings.
class RingSet {
 public:
  static Result<RingSet> open(const std::vector<int>& cpus, const AttrFeatures& features,
                              const RingBudget& budget);

  // Adds a second ring for every CPU, half as large as the first if that can be had, which wakes its reader
  // for each record; redirect() sends there from now on.
  Result<void> add_immediate(const AttrFeatures& features);
  [[nodiscard]] bool is_immediate() const { return first_active_ != 0; }

  // After fork(): maps the rings into this process. The parent keeps them too, and its mappings keep them
  // alive.
  Result<void> take_over();

  // Sends the records of `event_fd`, an event on cpus()[position], into that CPU's ring.
  Result<void> redirect(int event_fd, std::size_t position) const;

  // Waits until a ring, also one of `others` (null: none), is as full as its watermark, the task behind
  // `task_fd` (-1: none) has ended, or `wake_fd` (-1: none) is readable. True when woken before the timeout.
  Result<bool> wait(std::chrono::milliseconds timeout, int task_fd, int wake_fd,
                    const RingSet* others = nullptr);

  [[nodiscard]] std::span<PerfRing> rings() { return rings_; }
  [[nodiscard]] std::span<const PerfRing> rings() const { return rings_; }
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }
  // Of those that are in use.
  [[nodiscard]] std::size_t bytes_per_ring() const {
    return rings_.empty() ? 0 : rings_[first_active_].capacity();
  }
  // Said when the rings are smaller than they should be.
  [[nodiscard]] const std::optional<std::string>& notice() const { return notice_; }

 private:
  static Result<RingSet> open_with(const std::vector<int>& cpus, const AttrFeatures& features,
                                   std::size_t pages, std::size_t watermark_bytes);

  std::vector<int> cpus_;
  std::size_t first_active_ = 0;  // where the rings begin that are in use: 0, or behind those of cpus_
  std::vector<UniqueFd> holders_;
  std::vector<PerfRing> rings_;
  std::optional<std::string> notice_;
};

}  // namespace ddprof
