#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"

namespace ddprof {

// The stacks of blocks that are alive, as run-time addresses, in memory that the next worker inherits: their
// allocations were told once, perhaps days ago. Entries are only ever added; when there is no room left,
// those that are needed move together.
class StackLog {
 public:
  // `memory` outlives it. What an earlier worker wrote there is read, and checked.
  explicit StackLog(const MappedRegion& memory);

  // False: there is no room.
  bool add(Pid pid, std::uint64_t stack_id, std::span<const std::uint64_t> addresses);
  void remove(Pid pid, std::uint64_t stack_id) { places_.erase({to_int(pid), stack_id}); }
  // Empty: it is not known.
  [[nodiscard]] std::span<const std::uint64_t> find(Pid pid, std::uint64_t stack_id) const;
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;

  // Words: how many are used, and then entries of process, stack, number of addresses, addresses.
  [[nodiscard]] std::span<std::uint64_t> words() const {
    return {reinterpret_cast<std::uint64_t*>(memory_.data()), memory_.size() / sizeof(std::uint64_t)};
  }
  void move_together();

  const MappedRegion& memory_;
  absl::flat_hash_map<Key, std::size_t> places_;  // of entries
};

}  // namespace ddprof
