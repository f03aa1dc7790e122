#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

// What the kernel says when it is asked, which is worth more than what its settings promise.
struct PerfProbe {
  using Refusal = std::optional<OpenFailure>;  // nothing: it worked

  Refusal own;         // CPU time of this process in user mode, with registers and stack
  Refusal own_kernel;  // the same with the kernel
  Refusal all;         // all processes of one CPU
  Refusal cycles;      // a hardware counter on this process

  // A process of another user, where there is one.
  struct Foreign {
    Refusal events;
    bool is_readable = false;  // its mappings: /proc/PID/maps
  };
  std::optional<Foreign> foreign;

  // Rings as a recording at 99 Hz wants them, and has them now; 0: not even the smallest.
  std::size_t wanted_ring_bytes = 0;
  std::size_t ring_bytes = 0;
  std::size_t cpus = 0;
  std::string ring_problem;

  [[nodiscard]] bool can_profile() const { return !own && ring_bytes > 0; }
};

PerfProbe probe_perf();

}  // namespace ddprof
