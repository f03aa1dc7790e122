#include "session/live_memory.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace ddprof {

std::size_t LiveMemory::read(Address address, std::span<std::byte> into) {
  const std::size_t wanted = std::min(into.size(), left_);
  left_ -= wanted;
  return memory_.read_stack(pid_, address, into.first(wanted));
}

Nanoseconds LiveMemory::now() const { return monotonic_now(); }

}  // namespace ddprof
