#pragma once

// The kernel's own account of what a puppet cost, as one line of JSON.

#include <sys/resource.h>

#include "burn.h"

ALWAYS_INLINE uint64_t rusage_ns(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000u +
         ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000u;
}

struct Account {
  uint64_t self_ns;
  uint64_t children_ns;
};

// Read first in main: a wrapper that became this program by exec has spent CPU time under the same PID, which
// belongs to the wrapper and not to the program.
ALWAYS_INLINE struct Account account_now(void) {
  struct Account account = {rusage_ns(RUSAGE_SELF), rusage_ns(RUSAGE_CHILDREN)};
  return account;
}

ALWAYS_INLINE void print_account_since(struct Account before) {
  const struct Account now = account_now();
  const uint64_t self = now.self_ns - before.self_ns, children = now.children_ns - before.children_ns;
  printf("{\"self_ns\": %llu, \"children_ns\": %llu, \"total_ns\": %llu}\n", (unsigned long long)self,
         (unsigned long long)children, (unsigned long long)(self + children));
  fflush(stdout);
}
