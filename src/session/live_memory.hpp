#pragma once

#include "base/ids.hpp"
#include "unwind/memory_reader.hpp"

namespace ddprof {

// The memory of a running process through process_vm_readv: no stop, no signal. Needs the right to ptrace the
// process (same user and, with Yama's ptrace_scope 1, an ancestor of it); where that is refused, reads give
// nothing.
class LiveMemory final : public MemoryReader {
 public:
  void select(Pid pid) { pid_ = pid; }

  std::size_t read(Address address, std::span<std::byte> into) override;
  [[nodiscard]] Nanoseconds now() const override;

 private:
  Pid pid_{};
};

}  // namespace ddprof
