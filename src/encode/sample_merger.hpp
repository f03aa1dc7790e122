#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "encode/decode_limits.hpp"
#include "profile/dense_index.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {

// For readers of formats that say the same stack many times: adds up the values of equal stacks of one
// thread.
class SampleMerger {
 public:
  explicit SampleMerger(MemoryBudget& budget) : budget_(budget) {}

  // The labels that all samples of `thread` will have. Threads are numbered by the caller.
  void label_thread(std::uint32_t thread, std::vector<ProfileLabel> labels);

  // `locations` leaf first. False when the budget is used up: it is charged for every stack, new or not, so
  // that it bounds the time too.
  [[nodiscard]] bool add(std::uint32_t thread, std::span<const std::uint32_t> locations, std::size_t column,
                         std::int64_t value);

  // Hands over all samples, in the order in which they were first seen.
  void move_into(ProfileBuilder& builder, std::size_t columns) &&;

 private:
  struct Entry {
    std::uint32_t thread;
    std::vector<std::uint32_t> locations;
    std::vector<std::int64_t> values;  // as many as were needed
  };

  MemoryBudget& budget_;
  DenseIndex index_;
  std::vector<Entry> entries_;
  std::vector<std::vector<ProfileLabel>> labels_;  // by thread
};

}  // namespace ddprof
