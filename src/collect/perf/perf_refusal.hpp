#pragma once

// Why perf_event_open fails, and what helps: the one place that has these words. Errors, notices and `ddprof
// doctor` take them from here.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

inline constexpr std::string_view kKernelFramesNeed = "CAP_PERFMON or kernel.perf_event_paranoid <= 1";

// What makes something work that does not.
struct Cure {
  std::string command;     // on the machine itself
  std::string docker;      // options of `docker run`
  std::string kubernetes;  // fields of the container or pod
};

// The command, and how a container gets the same by capabilities ("PERFMON").
Cure cure_with(std::string command, std::span<const std::string_view> capabilities);

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
  std::optional<int> paranoid;       // kernel.perf_event_paranoid
  bool is_privileged = false;        // CAP_PERFMON or CAP_SYS_ADMIN, of the first user namespace
  bool has_vain_capability = false;  // the same of another user namespace
  bool is_seccomp_filtered = false;  // a container's filter may refuse the call itself
};

// With what /proc knows about this process.
OpenFailure gather_failure(int error_number, std::string_view what, std::int32_t task, bool wants_kernel);

[[nodiscard]] PerfObstacle obstacle_of(const OpenFailure& failure);
[[nodiscard]] Cure cure_of(PerfObstacle obstacle);
// "kernel.perf_event_paranoid is 2, which hides the kernel"
[[nodiscard]] std::string reason_of(const OpenFailure& failure);

// "perf_event_open sCPU on task 42: " and the reason, with the cure's command as the hint.
Error explain(const OpenFailure& failure);

}  // namespace ddprof
