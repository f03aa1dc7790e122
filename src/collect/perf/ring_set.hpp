#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/perf/perf_event.hpp"
#include "collect/perf/perf_ring.hpp"
#include "collect/perf/ring_budget.hpp"

namespace ddprof {

// One ring per CPU. Each belongs to a silent event of the calling thread, and real events are redirected into
// it, so that events may come and go (threads end, modes change) without touching the rings.
class RingSet {
 public:
  static Result<RingSet> open(const std::vector<int>& cpus, const AttrFeatures& features,
                              const RingBudget& budget);

  // Adds a second ring for every CPU, which wakes its reader for each record; redirect() sends there from now
  // on.
  Result<void> add_immediate(const AttrFeatures& features, std::size_t pages);
  [[nodiscard]] bool is_immediate() const { return first_active_ != 0; }

  // After fork(): maps the rings into this process. The parent keeps them too, and its mappings keep them
  // alive.
  Result<void> take_over();

  // Sends the records of `event_fd`, an event on cpus()[position], into that CPU's ring.
  Result<void> redirect(int event_fd, std::size_t position) const;

  // Waits until a ring is half full, the task behind `task_fd` (-1: none) has ended, or `wake_fd` (-1: none)
  // is readable. True when woken before the timeout.
  Result<bool> wait(std::chrono::milliseconds timeout, int task_fd, int wake_fd);

  [[nodiscard]] std::span<PerfRing> rings() { return rings_; }
  [[nodiscard]] std::span<const PerfRing> rings() const { return rings_; }
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }
  [[nodiscard]] std::size_t bytes_per_ring() const { return rings_.empty() ? 0 : rings_.front().capacity(); }
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
