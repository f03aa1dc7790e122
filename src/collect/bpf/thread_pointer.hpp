#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"

namespace ddprof {

// Where in the kernel's description of a task (task_struct) its thread pointer is. That differs from kernel
// to kernel. The five megabytes that describe it (/sys/kernel/btf/vmlinux) take longer to read than all else,
// so we look at our own task and search for the thread pointer that we know.
Result<std::uint32_t> find_thread_pointer_in_task();

// The first place of `value` among aligned words. Behind our own task may lie another with the same pointer:
// that of a process that was forked.
std::optional<std::uint32_t> find_first_word(std::span<const std::byte> bytes, std::uint64_t value);

}  // namespace ddprof
