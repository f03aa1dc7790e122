#include "session/live_heap_profile.hpp"

#include <array>
#include <string>
#include <string_view>
#include <tuple>

#include "profile/snapshot.hpp"

namespace ddprof {

namespace {

using namespace std::chrono_literals;

// By kAgeNames.
constexpr std::array<Nanoseconds, kAgeNames.size()> kLeastAges = {24h,  1h,  10min,
                                                                  1min, 10s, Nanoseconds::min()};

std::size_t age_class(Nanoseconds age) {
  std::size_t place = 0;
  while (age < kLeastAges[place]) ++place;
  return place;
}

struct Sum {
  std::int64_t objects = 0, bytes = 0;
};

constexpr std::uint32_t kObjects = 0;
constexpr std::uint32_t kSpace = 1;

}  // namespace

LiveHeapProfile::LiveHeapProfile(std::int64_t interval, const AggregatorBudget& budget)
    : interval_(interval), aggregator_({{"inuse_objects", "count"}, {"inuse_space", "bytes"}}, budget) {}

bool LiveHeapProfile::remember(Pid pid, std::uint64_t stack_id, ThreadKey thread,
                               std::span<const Frame> frames) {
  if (stacks_.size() >= kMostStacks) return false;
  KnownStack& stack = stacks_[{to_int(pid), stack_id}];
  stack.unused_for = 0;
  if (!stack.frames.empty()) return false;
  stack.thread = thread;
  stack.frames.assign(frames.begin(), frames.end());
  return true;
}

LiveHeapProfile::KnownStack* LiveHeapProfile::find_or_restore(Key key, LiveHeap& heap,
                                                              const FindFrames& find) {
  const auto known = stacks_.find(key);
  if (known != stacks_.end()) return &known->second;
  const Pid pid{key.first};
  const auto addresses = heap.find_stack(pid, key.second);
  if (addresses.empty() || !remember(pid, key.second, {pid, Tid{key.first}}, find(pid, addresses)))
    return nullptr;
  return &stacks_.at(key);
}

void LiveHeapProfile::forget(Pid pid, LiveHeap& heap) {
  absl::erase_if(stacks_, [&](const auto& entry) {
    if (entry.first.first != to_int(pid)) return false;
    heap.forget_stack(pid, entry.first.second);
    return true;
  });
}

void LiveHeapProfile::add_untracked(Pid root, std::int64_t count, std::int64_t bytes) {
  const Frame frame{.kind = FrameKind::accounted, .loss = Loss::untracked};
  aggregator_.add({root, Tid{to_int(root)}}, {&frame, 1}, {{kObjects, count}, {kSpace, bytes}});
}

ClosedPart LiveHeapProfile::close(LiveHeap& heap, const FindFrames& find, Pid root, Nanoseconds begin,
                                  Nanoseconds end) {
  absl::flat_hash_map<std::tuple<std::int32_t, std::uint64_t, std::size_t>, Sum> sums;
  heap.for_each_block([&](const LiveHeap::Block& block) {
    Sum& sum = sums[{to_int(block.pid), block.stack_id, age_class(end - block.since)}];
    sum.objects += block.count;
    sum.bytes += block.bytes;
  });
  processes_.clear();
  for (auto& [key, stack] : stacks_) ++stack.unused_for;
  for (const auto& [key, sum] : sums) {
    const auto& [pid, stack_id, age] = key;
    processes_.insert(pid);
    SampleContext context;
    context.others.emplace_back(kAgeLabel, kAgeNames[age]);
    KnownStack* known = find_or_restore({pid, stack_id}, heap, find);
    const Frame lost{.kind = FrameKind::accounted,
                     .loss = stack_id == 0 ? Loss::lost : Loss::worker};  // or there were too many stacks
    ThreadKey thread{Pid{pid}, Tid{pid}};
    std::span<const Frame> frames(&lost, 1);
    if (known != nullptr) {
      known->unused_for = 0;
      thread = known->thread;
      frames = known->frames;
    }
    aggregator_.add(thread, frames, {{kObjects, sum.objects}, {kSpace, sum.bytes}}, &context);
  }
  // What was sampled in this period may be in a record that comes before the block is seen.
  absl::erase_if(stacks_, [&](const auto& entry) {
    const auto& [key, stack] = entry;
    if (stack.unused_for <= 1) return false;
    heap.forget_stack(Pid{key.first}, key.second);
    return true;
  });
  ClosedPart part;
  part.kind = "live";
  part.profile = aggregator_.take(begin, end);
  part.visible_columns = 2;
  part.period_type = "space";
  part.period_unit = "bytes";
  part.default_column = "inuse_space";
  part.period = interval_;
  heap.forget_ended(root);
  return part;
}

}  // namespace ddprof
