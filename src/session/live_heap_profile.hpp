#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/frame.hpp"
#include "base/ids.hpp"
#include "collect/collector.hpp"
#include "profile/aggregator.hpp"
#include "session/closed_period.hpp"

namespace ddprof {

// The kind of profile that tells what is still allocated when a period closes: inuse_objects and inuse_space,
// by the stack of the allocation and by age. A sample of an allocation is handed over once; its stack is
// remembered here as long as one of its blocks is alive.
class LiveHeapProfile {
 public:
  static constexpr std::size_t kMostStacks = 200'000;

  LiveHeapProfile(std::int64_t interval, const AggregatorBudget& budget);

  // True: it was not known.
  bool remember(Pid pid, std::uint64_t stack_id, ThreadKey thread, std::span<const Frame> frames);
  // The process has become another program: the same addresses mean other code.
  void forget(Pid pid, LiveHeap& heap);
  // Blocks that are kept track of nowhere, under this process.
  void add_untracked(Pid root, std::int64_t count, std::int64_t bytes);
  // `find` gives the frames of a stack that only an earlier worker has seen.
  using FindFrames = std::function<std::span<const Frame>(Pid pid, std::span<const std::uint64_t> addresses)>;
  // `root` is whose end is that of all: its last blocks are told until the last profile.
  ClosedPart close(LiveHeap& heap, const FindFrames& find, Pid root, Nanoseconds begin, Nanoseconds end);
  // Those that had blocks when the last period was closed.
  [[nodiscard]] const absl::flat_hash_set<std::int32_t>& processes() const { return processes_; }
  [[nodiscard]] std::size_t stacks() const { return stacks_.size(); }

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;  // process and stack
  struct KnownStack {
    ThreadKey thread{};
    std::vector<Frame> frames;
    std::uint32_t unused_for = 0;  // periods
  };

  KnownStack* find_or_restore(Key key, LiveHeap& heap, const FindFrames& find);

  std::int64_t interval_;
  Aggregator aggregator_;
  absl::flat_hash_map<Key, KnownStack> stacks_;
  absl::flat_hash_set<std::int32_t> processes_;
};

}  // namespace ddprof
