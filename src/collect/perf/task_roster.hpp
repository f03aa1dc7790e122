#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

// The followed tasks, in memory that is shared with the next worker: which processes belong to the target
// cannot be told from /proc once their parents are gone.
class TaskRoster {
 public:
  struct Entry {
    std::int32_t tid = 0;  // 0: free
    std::int32_t pid = 0;
  };
  static constexpr std::size_t kEntries = 65'536;  // tasks past it are found by their parents
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  TaskRoster() = default;  // keeps nothing
  static Result<TaskRoster> create();
  explicit TaskRoster(MappedRegion memory) : memory_(std::move(memory)) {}

  std::uint32_t add(const Entry& entry);  // where it is, or kNowhere
  void remove(std::uint32_t at);

  // What is in the roster, by place. To be asked once, by a successor. A worker may have written anything
  // there: what is no number of a task is passed over.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Entry>> read();

 private:
  [[nodiscard]] std::span<Entry> entries() const;

  MappedRegion memory_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;  // never used from here on
};

}  // namespace ddprof
