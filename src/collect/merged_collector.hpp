#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "collect/collector.hpp"
#include "collect/owned_event.hpp"

namespace ddprof {

// Several collectors as one, their events merged by time: CPU of one engine, allocations of another. All were
// opened with the same events, so that their indexes mean the same.
//
// Events are copied until all that are older have come: as far as every collector that had something to say
// in this round has told. One that was silent is taken to have nothing older.
class MergedCollector final : public Collector, public Pausable, public Handover {
 public:
  explicit MergedCollector(std::vector<std::unique_ptr<Collector>> collectors);
  ~MergedCollector() override;

  // Only the first is waited for.
  Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) override;
  Result<void> drain(const EventHandler& handle) override;
  // Of the first that knows it.
  std::optional<std::int64_t> exact_total(std::uint32_t event) override;
  bool is_finished() override;
  [[nodiscard]] CollectorCounters counters() const override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::vector<std::string> notices() const override;
  [[nodiscard]] CollectorScope scope() const override;
  [[nodiscard]] std::vector<NeededCall> needed_calls() const override;
  [[nodiscard]] std::chrono::milliseconds longest_wait() const override;
  [[nodiscard]] std::vector<std::string> target_environment() const override;

  Pausable* pausable() override;
  Result<void> pause(const EventHandler& handle) override;
  Result<void> resume() override;
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const override;

  // Of the first that has the ability.
  RateControl* rate_control() override;
  ThreadContextSource* thread_contexts() override;

  LiveHeap* live_heap() override;
  TableReader* table_reader() override;

  Handover* handover() override { return this; }
  Result<void> take_over(int wake_fd, NoteSender sender) override;
  void follow(std::span<const std::byte> note, UniqueFd fd) override;
  void reclaim() override;

 private:
  struct Source;  // a collector and its events that wait

  EventHandler buffer_into(Source& source);
  // Hands over what is not newer than `limit`.
  void release(Nanoseconds limit, const EventHandler& handle);

  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace ddprof
