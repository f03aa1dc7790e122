#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace ddprof
