// The library that dlopen_user loads.

#include "burn.h"

NOINLINE void burn_in_plugin(uint64_t nanoseconds);

void burn_in_plugin(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME();
}
