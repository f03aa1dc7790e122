#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"

namespace ddprof {

// What a few instructions give away about a frame for which no CFI exists. Only patterns that leave no doubt;
// the user of an answer still checks that it leads to code.

// The caller's state, as offsets from the stack pointer of the innermost frame.
struct ReturnHint {
  std::int64_t return_offset = 0;         // of the return address; unused when it is in the link register
  std::optional<std::int64_t> fp_offset;  // of the caller's frame pointer; none: it is still in its register
  bool is_in_link_register = false;       // aarch64
};

// Before a frame pointer is set up, in an epilogue, in an import stub. `code` starts at the pc.
[[nodiscard]] std::optional<ReturnHint> find_return_hint(Architecture architecture,
                                                         std::span<const std::byte> code);

// A call instruction ends where `code_before` ends.
[[nodiscard]] bool is_after_call(Architecture architecture, std::span<const std::byte> code_before);

// Code that does nothing but call rt_sigreturn: where signal handlers return to.
[[nodiscard]] bool is_signal_trampoline(Architecture architecture, std::span<const std::byte> code);

// Whether an x86-64 system call, and nothing but the test of its result, precedes: `before` are the bytes
// that end at the address.
[[nodiscard]] bool is_after_system_call(std::span<const std::byte> before);

}  // namespace ddprof
