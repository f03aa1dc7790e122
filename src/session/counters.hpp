#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collect/collector.hpp"
#include "export/destination.hpp"

namespace ddprof {

// Processes that were sampled and not unwound.
struct ProcessCount {
  std::uint64_t processes = 0;
  std::uint64_t samples = 0;
  std::int64_t cpu = 0;
};

// Everything that a run counts. A counter is a line here, or in the structs within: all workers of a run add
// to it, and the summary and the metrics have it.
struct Counters {
  CollectorCounters collector;
  std::uint64_t stacks = 0;                // samples that were unwound
  std::uint64_t allocations = 0;           // the same, of allocations
  std::uint64_t stacks_from_code = 0;      // of them, with frames left by rules made from instructions
  std::uint64_t unread_code = 0;           // times that generated code was not read: too much in a second
  std::uint64_t contexts = 0;              // samples with what their thread told of itself
  std::uint64_t contexts_over_budget = 0;  // samples that lost it: too many different ones in a period
  ProcessCount excluded;                   // by --include and --exclude
  ProcessCount over_limit;                 // of --maximum-pids
  std::uint64_t sent = 0;                  // profiles
  std::uint64_t failed = 0;
  std::uint64_t dropped = 0;  // the destination was too slow
  DeliveryCounters delivery;
};
static_assert(std::has_unique_object_representations_v<Counters> && sizeof(Counters) % 8 == 0,
              "every word is a counter");

template <typename Combine>
Counters combine(const Counters& left, const Counters& right, Combine combine_words) {
  using Words = std::array<std::uint64_t, sizeof(Counters) / 8>;
  auto words = std::bit_cast<Words>(left);
  const auto others = std::bit_cast<Words>(right);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = combine_words(words[i], others[i]);
  return std::bit_cast<Counters>(words);
}

inline Counters operator+(const Counters& left, const Counters& right) {
  return combine(left, right, [](std::uint64_t one, std::uint64_t other) { return one + other; });
}

// What was counted in between. Counters of a run only grow; those of two runs may not, and then the later one
// stands for itself.
inline Counters grown(const Counters& before, const Counters& after) {
  return combine(before, after,
                 [](std::uint64_t old, std::uint64_t now) { return now - (now >= old ? old : 0); });
}

}  // namespace ddprof
