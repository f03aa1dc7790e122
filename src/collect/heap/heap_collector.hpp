#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "collect/engine.hpp"
#include "collect/heap/heap_arena.hpp"
#include "collect/heap/heap_slot.hpp"
#include "collect/heap/stack_log.hpp"
#include "collect/heap/table_publisher.hpp"
#include "collect/target.hpp"

namespace ddprof {

// Reads what libddprof.so in processes of the target has sampled. The library attaches by itself: all that is
// done here is to look at the arena now and then.
class HeapCollector final : public Collector, public Handover, public LiveHeap, public TableReader {
 public:
  static Result<std::unique_ptr<HeapCollector>> open(const Target& target, const EngineOptions& options);

  HeapCollector(HeapArena arena, MappedRegion stack_memory, Pid root, std::uint32_t event,
                std::string library);

  Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) override;
  Result<void> drain(const EventHandler& handle) override;
  std::optional<std::int64_t> exact_total(std::uint32_t) override { return std::nullopt; }
  bool is_finished() override;
  [[nodiscard]] CollectorCounters counters() const override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::vector<std::string> notices() const override { return {}; }
  [[nodiscard]] std::vector<NeededCall> needed_calls() const override;
  [[nodiscard]] std::chrono::milliseconds longest_wait() const override;
  [[nodiscard]] std::vector<std::string> target_environment() const override;

  LiveHeap* live_heap() override { return this; }
  void for_each_block(const std::function<void(const Block&)>& take) const override;
  void forget_ended(Pid except) override {
    std::erase_if(ended_, [&](const Block& block) { return block.pid != except; });
  }
  void forget_blocks(Pid pid, Nanoseconds time) override;
  void keep_stack(Pid pid, std::uint64_t stack_id, std::span<const std::uint64_t> addresses) override {
    stacks_->add(pid, stack_id, addresses);
  }
  void forget_stack(Pid pid, std::uint64_t stack_id) override { stacks_->remove(pid, stack_id); }
  [[nodiscard]] std::span<const std::uint64_t> find_stack(Pid pid, std::uint64_t stack_id) const override {
    return stacks_->find(pid, stack_id);
  }

  TableReader* table_reader() override { return this; }
  [[nodiscard]] std::span<const ddprof_unwind_rule> published_rules() const override {
    return tables_->rules();
  }
  [[nodiscard]] std::vector<Pid> processes() const override;
  void publish(Pid pid, const ModuleMap& modules, const RuleDictionary& rules) override;

  Handover* handover() override { return this; }
  Result<void> take_over(int wake_fd, NoteSender) override {
    wake_fd_ = wake_fd;
    stacks_.emplace(stack_memory_);  // with what earlier workers have added
    tables_.emplace(arena_.tables());
    return {};
  }
  void follow(std::span<const std::byte>, UniqueFd) override {}
  void reclaim() override {}

 private:
  static constexpr int kStartRounds = 200;

  struct Source {
    std::uint32_t number = 0;
    Pid pid{};
    Nanoseconds since{};  // it attached
    std::unique_ptr<HeapSlot> slot;
    std::uint32_t published = 0;  // which content of its module map
    bool has_ended = false;
    bool is_replaced = false;  // by exec: what it had allocated is gone
  };

  static std::uint32_t load(const std::uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
  void find_processes();
  void add(std::uint32_t number, ddprof_heap_claim& claim);
  static void replace(Source& source) { source.has_ended = source.is_replaced = true; }
  static void for_each_block_of(const Source& source, const std::function<void(const Block&)>& take);
  // Its slot is free for another process.
  void end(Source& source);
  void read_all(const EventHandler& handle);
  void read(Source& source, Nanoseconds now, const EventHandler& handle);
  void hand_over(const HeapRecord& record, Pid pid, const EventHandler& handle) const;

  HeapArena arena_;
  Pid root_;
  std::uint32_t event_;  // index into the configured events
  std::string library_;
  std::optional<TablePublisher> tables_;
  MappedRegion stack_memory_;  // that all workers share
  std::optional<StackLog> stacks_;
  std::vector<Source> sources_;
  std::vector<Block> ended_;  // of processes that have ended in this period
  HeapCounters counters_;
  std::uint64_t malformed_ = 0;
  bool is_busy_ = false;             // there were records in the last round
  int start_rounds_ = kStartRounds;  // that are left to look more often
  int wake_fd_ = -1;                 // borrowed
};

}  // namespace ddprof
