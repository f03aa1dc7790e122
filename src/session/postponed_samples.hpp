#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "collect/owned_event.hpp"

namespace ddprof {

// Samples of processes whose files are still being opened, or their unwind tables compiled: the rings are
// emptied meanwhile. What does not fit is unwound at once, with what is there.
class PostponedSamples {
 public:
  static constexpr Nanoseconds kLongest = std::chrono::seconds(2);
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20U;

  // False: there is no room.
  bool add(const SampleEvent& sample, Nanoseconds now) {
    const std::size_t bytes = sizeof(OwnedEvent) + sample.stack.size_bytes() +
                              sample.kernel_chain.size_bytes() + sample.user_chain.size_bytes() +
                              sample.thread_context.size_bytes();
    if (bytes_ + bytes > kMostBytes) return false;
    bytes_ += bytes;
    Waiting& waiting = processes_.try_emplace(to_int(sample.pid), Waiting{now}).first->second;
    waiting.bytes += bytes;
    waiting.samples.emplace_back(sample, sample.time);
    return true;
  }

  [[nodiscard]] bool empty() const { return processes_.empty(); }
  [[nodiscard]] bool has(Pid pid) const { return processes_.contains(to_int(pid)); }
  [[nodiscard]] Nanoseconds since(Pid pid) const { return processes_.at(to_int(pid)).since; }
  [[nodiscard]] std::vector<Pid> processes() const {
    std::vector<Pid> pids;
    for (const auto& [pid, waiting] : processes_) pids.push_back(Pid{pid});
    return pids;
  }

  // Hands over the samples of a process in their order, and forgets them.
  template <typename Handle>
  void take(Pid pid, Handle handle) {
    auto taken = processes_.extract(to_int(pid));
    if (taken.empty()) return;
    bytes_ -= taken.mapped().bytes;
    for (const OwnedEvent& event : taken.mapped().samples) handle(std::get<SampleEvent>(event.event()));
  }

 private:
  struct Waiting {
    Nanoseconds since{};
    std::size_t bytes = 0;
    std::deque<OwnedEvent> samples{};
  };

  absl::flat_hash_map<std::int32_t, Waiting> processes_;  // by pid
  std::size_t bytes_ = 0;
};

}  // namespace ddprof
