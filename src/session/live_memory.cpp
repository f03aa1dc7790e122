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

CodeBytes LiveMemory::read_code(const Module& module, Address address, bool is_doubted) {
  return code_.find(pid_, module, address, is_doubted, now());
}

}  // namespace ddprof
