#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddprof {

enum class Architecture : std::uint8_t { x86_64, aarch64 };

// User-mode registers of a stopped or sampled thread, numbered as DWARF numbers them (x86-64 psABI
// figure 3.36: rax rdx rcx rbx rsi rdi rbp rsp r8..r15; AAPCS64: x0..x30, sp is 31), with the four that
// unwinding needs by name.
struct Registers {
  static constexpr std::size_t kCount = 32;

  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;  // rbp or x29
  std::uint64_t lr = 0;  // x30; unused on x86-64
  std::array<std::uint64_t, kCount> by_dwarf_number{};
};

}  // namespace ddprof
