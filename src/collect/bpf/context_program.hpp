#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "base/thread_variable.hpp"
#include "collect/bpf/bpf_call.hpp"

namespace ddprof {

// Where in the kernel's description of a task (task_struct) its thread pointer is. That differs from kernel
// to kernel. The five megabytes that describe it (/sys/kernel/btf/vmlinux) take longer to read than all else,
// so we look at our own task and search for the thread pointer that we know.
Result<std::uint32_t> find_thread_pointer_in_task();

// The first place of `value` among aligned words. Behind our own task may lie another with the same pointer:
// that of a process that was forked.
std::optional<std::uint32_t> find_first_word(std::span<const std::byte> bytes, std::uint64_t value);

// Memory that the program below shares with us. It looks processes up by their number: a hash table with
// linear probing, so that one that is not in it costs a few loads.
struct ContextTable {
  static constexpr std::size_t kSlots = 1024;
  static constexpr std::size_t kProbes = 8;

  struct Slot {
    std::uint32_t process = 0;  // written last; 0: free
    ThreadVariable::Kind kind = ThreadVariable::Kind::none;
    std::int64_t offset = 0;
    std::uint64_t module = 0;
  };

  std::uint32_t used = 0;  // 0: the program has nothing to do
  std::uint32_t reserved = 0;
  std::uint64_t lost = 0;  // contexts that the ring had no room for
  Slot slots[kSlots];
};
static_assert(sizeof(ContextTable) == 16 + 24 * ContextTable::kSlots);

// What it writes for a sample that was taken while its thread had a context.
struct ContextHeader {
  std::uint64_t time = 0;     // CLOCK_MONOTONIC, just before the time of the sample
  std::uint64_t thread = 0;   // process in the upper half
  std::uint64_t address = 0;  // of the instruction that was interrupted
  std::uint32_t cpu = 0;
  std::uint32_t attribute_bytes = 0;
};
inline constexpr std::size_t kContextHeadBytes = 28;         // of the thread's record, before its attributes
inline constexpr std::size_t kMaxContextAttributes = 612;    // the specification recommends 640 in all
inline constexpr std::size_t kUsualContextAttributes = 100;  // most have fewer: a shorter place in the ring

// The PID namespace whose numbers we and our perf events use.
struct PidNamespace {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

struct ContextProgramFacts {
  int table = -1;  // descriptors of the maps
  int ring = -1;
  std::uint32_t thread_pointer = 0;           // offset in task_struct
  std::optional<PidNamespace> pid_namespace;  // none: the first one, whose numbers the kernel itself uses
};

// Runs in the interrupt of a sample, before the sample is written, and lets it be written. If the process is
// in the table and the thread has a valid context, that goes to the ring. It reads memory of the target and
// never writes any; memory that is not there at this moment counts as no context.
BpfCode context_program(const ContextProgramFacts& facts);

}  // namespace ddprof
