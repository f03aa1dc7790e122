#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "profile/dense_index.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {

// Counts what a reader keeps. Formats with shared stacks can say much with few bytes.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : left_(bytes) {}

  // False when there is not that much left; the caller then gives up.
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  void give_back(std::size_t bytes) { left_ += bytes; }

 private:
  std::size_t left_;
};

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

// What readers of formats without columns and labels of their own make of them.

// More value columns than any profile has; a file that has more wants to be large.
inline constexpr std::size_t kMaxColumns = 64;

// The position of a value column in the profile, added when it is new; none when there are too many.
std::optional<std::size_t> find_or_add_column(ProfileBuilder& builder, std::string_view type,
                                              std::string_view unit);

// "thread name" and so on, for those that are known.
std::vector<ProfileLabel> thread_labels(ProfileBuilder& builder, std::string_view thread,
                                        std::string_view tid, std::string_view process, std::string_view pid);

}  // namespace ddprof
