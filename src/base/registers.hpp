#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddprof {

enum class Architecture : std::uint8_t { x86_64, aarch64, i386 };

// Of an address, and of what a push or a call puts on the stack.
constexpr std::size_t word_bytes(Architecture architecture) {
  return architecture == Architecture::i386 ? 4 : 8;
}

// User-mode registers of a stopped or sampled thread, numbered as DWARF numbers them (x86-64 psABI
// figure 3.36: rax rdx rcx rbx rsi rdi rbp rsp r8..r15; AAPCS64: x0..x30, sp is 31; i386 psABI table 2.14:
// eax ecx edx ebx esp ebp esi edi), with the four that unwinding needs by name.
struct Registers {
  static constexpr std::size_t kCount = 32;

  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;  // rbp, x29 or ebp
  std::uint64_t lr = 0;  // x30; unused on x86
  std::array<std::uint64_t, kCount> by_dwarf_number{};
};

}  // namespace ddprof
