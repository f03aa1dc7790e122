#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// bpf(2), as far as it is needed here. Descriptors are close-on-exec.

// One value of `bytes`, which can be mapped into memory.
Result<UniqueFd> create_bpf_memory(std::size_t bytes);
// `bytes`: a power of two, and whole pages.
Result<UniqueFd> create_bpf_ring(std::size_t bytes);
Result<UniqueFd> load_bpf_program(bpf_prog_type type, std::span<const bpf_insn> code, std::string_view name);
// Runs a program of type raw tracepoint once, in the context of the caller.
Result<void> run_bpf_program(int program);

}  // namespace ddprof
