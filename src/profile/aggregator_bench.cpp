#include <benchmark/benchmark.h>

#include <vector>

#include "profile/aggregator.hpp"

namespace ddprof {
namespace {

std::vector<std::vector<Frame>> make_stacks(std::size_t count, std::size_t depth) {
  std::vector<std::vector<Frame>> stacks(count, std::vector<Frame>(depth));
  for (std::size_t stack = 0; stack < count; ++stack) {
    for (std::size_t at = 0; at < depth; ++at) {
      // Leaves differ, roots are shared, as in real programs.
      const std::uint64_t variant = at < depth / 2 ? stack : stack % 7;
      stacks[stack][at] = {.file = FileId{1 + static_cast<std::uint32_t>(at % 3)},
                           .address = 0x1000 + at * 64 + variant * 0x10000};
    }
  }
  return stacks;
}

// The goal: below 1 us for a stack of 48 frames that was seen before.
void repeated_stack(benchmark::State& state) {
  const auto stacks =
      make_stacks(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  Aggregator aggregator(std::vector<Column>{{"samples", "count"}, {"cpu", "nanoseconds"}});
  std::size_t next = 0;
  for (auto _ : state) {
    aggregator.add({Pid{1}, Tid{2}}, stacks[next], {{0, 1}, {1, 10'101'010}});
    if (++next == stacks.size()) next = 0;
  }
}
BENCHMARK(repeated_stack)
    ->Args({1, 48})
    ->Args({1000, 48})
    ->Args({20000, 48})
    ->Args({1000, 16})
    ->Args({1000, 200});

void new_stacks(benchmark::State& state) {
  const auto stacks = make_stacks(20000, 48);
  for (auto _ : state) {
    Aggregator aggregator(std::vector<Column>{{"samples", "count"}, {"cpu", "nanoseconds"}});
    for (const auto& stack : stacks) aggregator.add({Pid{1}, Tid{2}}, stack, {{0, 1}, {1, 10'101'010}});
    benchmark::DoNotOptimize(aggregator.take({}, {}));
  }
  state.SetItemsProcessed(state.iterations() * 20000);
}
BENCHMARK(new_stacks);

}  // namespace
}  // namespace ddprof
