#pragma once

#include "base/ids.hpp"
#include "process/foreign_memory.hpp"
#include "session/code_memory.hpp"
#include "unwind/unwinder.hpp"

namespace ddprof {

// The memory of a running process, as far as one sample may read of it. Needs the right to ptrace the process
// (same user and, with Yama's ptrace_scope 1, an ancestor of it); where that is refused, reads give nothing.
class LiveMemory final : public MemoryReader {
 public:
  // Of a stack as large as stacks usually may be a fraction holds frames; a stack that was made for us could
  // lead anywhere.
  static constexpr std::size_t kMostBytes = std::size_t{2} << 20U;

  explicit LiveMemory(ForeignMemory& memory) : memory_(memory), code_(memory) {}

  // Another sample begins.
  void select(Pid pid, Nanoseconds taken_at) {
    pid_ = pid;
    left_ = kMostBytes;
    code_.begin_stack(taken_at);
  }

  std::size_t read(Address address, std::span<std::byte> into) override;
  [[nodiscard]] Nanoseconds now() const override;
  CodeBytes read_code(const Module& module, Address address, bool is_doubted) override;

  [[nodiscard]] CodeMemory& code() { return code_; }
  [[nodiscard]] const CodeMemory& code() const { return code_; }

 private:
  ForeignMemory& memory_;
  CodeMemory code_;
  Pid pid_{};
  std::size_t left_ = 0;  // of what this sample may read
};

}  // namespace ddprof
