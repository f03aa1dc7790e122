// The doors that a process closes behind itself: a sandbox, and another user or root folder. What the library
// needs of the profiler it opens before, if it has not yet.

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "inject/attachment.hpp"
#include "inject/hooks.hpp"

using namespace inject;  // NOLINT: only what the program sees is below

// These two take what registers and the stack hold, and pass it on by a jump: arguments that the program did
// not pass are not used, and a call that returns twice returns to the program.

DDPROF_EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  if (option == PR_SET_SECCOMP) attachment.before_sandbox(a == SECCOMP_MODE_STRICT);
  return real.prctl(option, a, b, c, d);
}

DDPROF_EXPORT long syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (__builtin_expect(number == SYS_seccomp, 0) &&
      (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER))
    attachment.before_sandbox(a == SECCOMP_SET_MODE_STRICT);
  return real.syscall(number, a, b, c, d, e, f);
}

DDPROF_EXPORT int setuid(uid_t user) noexcept {
  attachment.before_departure();
  return real.setuid(user);
}
DDPROF_EXPORT int seteuid(uid_t user) noexcept {
  attachment.before_departure();
  return real.seteuid(user);
}
DDPROF_EXPORT int setreuid(uid_t user, uid_t effective) noexcept {
  attachment.before_departure();
  return real.setreuid(user, effective);
}
DDPROF_EXPORT int setresuid(uid_t user, uid_t effective, uid_t saved) noexcept {
  attachment.before_departure();
  return real.setresuid(user, effective, saved);
}
DDPROF_EXPORT int setgid(gid_t group) noexcept {
  attachment.before_departure();
  return real.setgid(group);
}
DDPROF_EXPORT int setresgid(gid_t group, gid_t effective, gid_t saved) noexcept {
  attachment.before_departure();
  return real.setresgid(group, effective, saved);
}
DDPROF_EXPORT int chroot(const char* path) noexcept {
  attachment.before_departure();
  return real.chroot(path);
}
