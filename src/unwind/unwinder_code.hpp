#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"
#include "unwind/module_map.hpp"

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

// Where the direct call leads that ends just before `address`, and with `code_before`; none: there is no such
// call. Bytes of another instruction can look like one.
[[nodiscard]] std::optional<std::uint64_t> direct_call_target(Architecture architecture,
                                                              std::span<const std::byte> code_before,
                                                              std::uint64_t address);

// A stub that jumps to where the dynamic linker says. `code` starts with it.
[[nodiscard]] bool is_import_stub(Architecture architecture, std::span<const std::byte> code);

// Code that does nothing but call rt_sigreturn: where signal handlers return to.
[[nodiscard]] bool is_signal_trampoline(Architecture architecture, std::span<const std::byte> code);

// At any place in a trampoline of i386, the end included, where the kernel is entered: how far above the
// stack pointer the registers (a sigcontext) are that it restores. The pc is `at` bytes into `code`.
[[nodiscard]] std::optional<std::uint64_t> find_signal_context_i386(std::span<const std::byte> code,
                                                                    std::size_t at);
[[nodiscard]] std::optional<std::uint64_t> find_signal_context_i386(const Module& module, std::uint64_t pc);

// Whether an x86-64 system call, and nothing but the test of its result, precedes: `before` are the bytes
// that end at the address.
[[nodiscard]] bool is_after_system_call(std::span<const std::byte> before);

}  // namespace ddprof
