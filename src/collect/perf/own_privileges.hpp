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

  // By the numbers of linux/capability.h. True only for one that counts.
  [[nodiscard]] bool has(int capability) const {
    return is_in_first_user_namespace && ((capabilities >> static_cast<unsigned>(capability)) & 1) != 0;
  }
  // Before Linux 5.8 there is only CAP_SYS_ADMIN.
  [[nodiscard]] bool may_monitor() const { return has(CAP_PERFMON) || has(CAP_SYS_ADMIN); }
};

// `root` is put before /proc.
OwnPrivileges own_privileges(const std::string& root = "");

}  // namespace ddprof
