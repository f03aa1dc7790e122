#pragma once

// For tests: who asks, and what a kernel may have answered.
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "collect/perf/perf_probe.hpp"
#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

// An ordinary user, or one with these capabilities.
inline OwnPrivileges user_at(int paranoid, std::initializer_list<int> capabilities = {}) {
  OwnPrivileges privileges{.paranoid = paranoid};
  for (const int capability : capabilities)
    privileges.capabilities |= std::uint64_t{1} << static_cast<unsigned>(capability);
  return privileges;
}

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
