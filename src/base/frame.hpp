#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/ids.hpp"

namespace ddprof {

// Why a stack is not longer than it is. Shown to users: every reason but `complete` becomes a frame at the
// root end of the stack (depth_limit: where frames are left out), a counter per module, and a line in the
// summary.
enum class StopReason : std::uint8_t {
  complete,            // reached the thread's root
  truncated_copy,      // the stack is deeper than the bytes that were copied
  no_unwind_info,      // the module has no usable rule here and the frame pointer does not verify
  unsupported_rule,    // CFI that the table cannot express
  bad_memory,          // a rule pointed outside of the stack
  unknown_code,        // the address is in no known module and the frame pointer does not verify
  depth_limit,         // more frames than we keep: some in the middle are left out
  no_registers,        // the kernel gave no user registers (a task in exec or exit)
  own_process,         // the profiler's own, and there were too many of them to be unwound
  unread_unwind_info,  // the module has unwind information that was too large to read, or is left alone
};
inline constexpr std::size_t kStopReasons = 10;

enum class FrameKind : std::uint8_t {
  user,    // `address` is the ELF virtual address in `file`; FileId::none: an absolute run-time address (JIT)
  kernel,  // `address` is the kernel's run-time address
  stopped,    // marker at the root end of an incomplete stack: `reason`, in module `file`
  accounted,  // marker for CPU time that no sample caught: `loss` says why
};

// CPU time (or events) known exactly from the kernel's totals that no sample stands for.
enum class Loss : std::uint8_t {
  none,
  unsampled,           // tasks, or ends of tasks, shorter than one sampling period
  lost,                // the ring was full: the kernel counted samples that it could not write
  kernel,              // time in the kernel that this user may not sample
  throttled,           // the kernel stopped the event for a while
  too_many_stacks,     // sampled, but past the number of distinct stacks that one period keeps
  too_many_processes,  // sampled, but past the number of processes that are followed at once
  worker,              // sampled by a worker of the profiler that ended before it could tell
  other_user,          // of a process whose events the kernel took away at a set-user-ID exec
  untracked,           // live blocks beyond those that are kept track of
};
inline constexpr std::size_t kLosses = 10;

// One frame until its period closes: the identity of code, not its name. For callers (not the leaf) `address`
// is already moved into the call instruction (return address - 1).
struct Frame {
  FrameKind kind = FrameKind::user;
  StopReason reason = StopReason::complete;
  Loss loss = Loss::none;
  FileId file = FileId::none;
  std::uint64_t address = 0;

  friend auto operator<=>(const Frame&, const Frame&) = default;

  template <typename H>
  friend H AbslHashValue(H hash, const Frame& frame) {
    return H::combine(std::move(hash), frame.kind, frame.reason, frame.loss, frame.file, frame.address);
  }
};

// One call at an address, as debug information tells it. An address in inlined code has several of them: the
// innermost first, the function that the linker knows last. Who hands them out says how long the texts live.
struct SourceCall {
  std::string_view linker_name;  // mangled; empty when the language has no such names
  std::string_view name;   // as written in the source; without a linker name, with namespaces and classes
  std::string_view file;   // as the compiler recorded it, made absolute by its working directory
  std::uint32_t line = 0;  // of the code, or of the inlined call below it; 0: unknown
  std::uint32_t column = 0;
  std::uint32_t start_line = 0;  // where the function is declared; 0: unknown
};

}  // namespace ddprof
