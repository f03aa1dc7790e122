#pragma once

#include <span>

#include "base/result.hpp"
#include "collect/collector.hpp"

namespace ddprof {

// The worker reads bytes that strangers wrote. From here on this process, with all its threads, can do what
// profiling needs (read files and memory, write profiles, talk to an agent) and nothing else: no exec, no new
// process, no new code, no ptrace, no signal to others, no change of identity (but of that which files are
// opened with), no mount, no BPF, no netlink. For good. A call that is
// refused answers as if the kernel did not know it, so that libraries fall back; a dangerous one is not
// permitted. `needed` is what the collector asks for beyond that.
Result<void> enter_worker_sandbox(std::span<const NeededCall> needed = {});

}  // namespace ddprof
