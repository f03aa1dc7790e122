#pragma once

// Why perf_event_open fails, and what helps: the one place that has these words. Errors, notices and `ddprof
// doctor` take them from here.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collect/finding.hpp"
#include "collect/perf/own_privileges.hpp"

namespace ddprof {

// "CAP_PERFMON or kernel.perf_event_paranoid <= 1", as far as it can be had here.
[[nodiscard]] std::string kernel_frames_need(const OwnPrivileges& own);

// For who lacks capabilities: what gives them, or what else helps (a sysctl, which is the host's in a
// container), by what is possible here.
Cure capability_cure(const OwnPrivileges& own, std::span<const int> capabilities,
                     std::string_view sysctl = {});

enum class PerfObstacle : std::uint8_t {
  level_forbids,       // kernel.perf_event_paranoid above 2: no events for ordinary users
  level_own_only,      // above 0: own processes only
  level_hides_kernel,  // above 1
  level_unknown,       // refused, and the level cannot be read
  seccomp_filter,
  foreign_process,
  security_policy,  // nobody else is left
  no_counter,
  no_process,
  no_descriptors,
  unknown_attribute,
  no_perf_events,
  other,
};

// Everything that decides how a refusal is explained.
struct OpenFailure {
  int error_number = 0;
  std::string what;
  std::int32_t task = 0;  // 0 the caller, -1 all
  bool wants_kernel = false;
  bool is_foreign = false;            // the task is another user's
  bool is_refused_by_filter = false;  // a seccomp filter refuses the call, whatever it asks for
  OwnPrivileges own;
};

// With what /proc knows about this process.
OpenFailure gather_failure(int error_number, std::string_view what, std::int32_t task, bool wants_kernel);

[[nodiscard]] PerfObstacle obstacle_of(const OpenFailure& failure);
// What would make that very request succeed here.
[[nodiscard]] Cure cure_of(const OpenFailure& failure);
// Of those that are made by level: the value that kernel.perf_event_paranoid has to have at most.
[[nodiscard]] int level_for(const OpenFailure& failure);
// "kernel.perf_event_paranoid is 2, which hides the kernel"
[[nodiscard]] std::string reason_of(const OpenFailure& failure);

// "perf_event_open sCPU on task 42: " and the reason, with the cure's command as the hint.
Error explain(const OpenFailure& failure);

}  // namespace ddprof
