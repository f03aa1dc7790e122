#pragma once

// For tests: what a kernel may have answered.
#include <utility>

#include "doctor/perf_probe.hpp"

namespace ddprof {

// Everything works, with processes of others.
inline PerfProbe working_probe() {
  PerfProbe probe;
  probe.foreign = PerfProbe::Foreign{.events = std::nullopt, .is_readable = true};
  probe.cpus = 2;
  probe.wanted_ring_bytes = probe.ring_bytes = std::size_t{4} << 20U;
  return probe;
}

inline OpenFailure refused(OpenFailure failure) {
  failure.what = "sCPU";
  return failure;
}

}  // namespace ddprof
