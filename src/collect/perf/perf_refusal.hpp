#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collect/finding.hpp"

namespace ddprof {

// What the kernel weighs before this process may open an event or lock memory, as /proc tells it.
struct OwnPrivileges {
  std::optional<int> paranoid;     // kernel.perf_event_paranoid; nothing: it cannot be read
  std::uint64_t capabilities = 0;  // effective
  // perf events are the whole machine's: the kernel asks for capabilities of the first user namespace, and
  // those of a rootless container are of another.
  bool is_in_first_user_namespace = true;
  bool is_seccomp_filtered = false;
  std::uint64_t bounding = ~std::uint64_t{0};  // capabilities that exec can give
  bool has_no_new_privileges = false;          // exec gives none
  bool is_root = false;                        // by its user; what counts is capabilities
  std::string executable = "ddprof";           // whom setcap(8) would give more

  // By the numbers of linux/capability.h. True only for one that counts.
  [[nodiscard]] bool has(int capability) const {
    return is_in_first_user_namespace && ((capabilities >> static_cast<unsigned>(capability)) & 1) != 0;
  }
  // Whether setcap(8) on the executable would give it to us.
  [[nodiscard]] bool may_gain(int capability) const {
    return is_in_first_user_namespace && !has_no_new_privileges &&
           ((bounding >> static_cast<unsigned>(capability)) & 1) != 0;
  }
  // Before Linux 5.8 there is only CAP_SYS_ADMIN.
  [[nodiscard]] bool may_monitor() const { return has(CAP_PERFMON) || has(CAP_SYS_ADMIN); }
};

// `root` is put before /proc.
OwnPrivileges own_privileges(const std::string& root = "");

// Why perf_event_open fails, and what helps: the one place that has these words. Errors, notices and `ddprof
// doctor` take them from here.

// "CAP_PERFMON or kernel.perf_event_paranoid <= 1", as far as it can be had here.
[[nodiscard]] std::string kernel_frames_need(const OwnPrivileges& own);

// For who lacks capabilities: what gives them, or what else helps (a sysctl, which is the host's in a
// container), by what is possible here.
Hint capability_hint(const OwnPrivileges& own, std::span<const int> capabilities,
                     std::string_view sysctl = {});

enum class PerfObstacle : std::uint8_t {
  level_forbids,       // kernel.perf_event_paranoid above 2: no events for ordinary users
  level_own_only,      // above 0: own processes only
  level_hides_kernel,  // above 1
  level_unknown,       // refused, and the level cannot be read
  seccomp_filter,
  foreign_process,
  security_policy,  // nothing else is left
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
[[nodiscard]] Hint hint_for(const OpenFailure& failure);
// Of those that are made by level: the value that kernel.perf_event_paranoid has to have at most.
[[nodiscard]] int level_for(const OpenFailure& failure);
// "kernel.perf_event_paranoid is 2, which hides the kernel"
[[nodiscard]] std::string reason_of(const OpenFailure& failure);

// "perf_event_open sCPU on task 42: " and the reason, with the hint's command as the hint.
Error explain(const OpenFailure& failure);

}  // namespace ddprof
