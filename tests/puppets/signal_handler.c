// signal_handler SECONDS [plain|altstack]: a timer interrupts the work at arbitrary instructions; about half
// of the time is spent in the handler, on the interrupted stack or on its own.

#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "burn.h"

NOINLINE void burn_in_handler(void) {
  burn_ns(2000000);
  KEEP_FRAME();
}

static void on_alarm(int signal) {
  (void)signal;
  burn_in_handler();
  KEEP_FRAME();
}

NOINLINE void interrupted_work(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME();
}

static char alternate_stack[65536];

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  const int on_its_own_stack = strcmp(argument(argc, argv, 2, "plain"), "altstack") == 0;
  if (on_its_own_stack) {
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    if (sigaltstack(&stack, NULL) != 0) return 1;
  }
  struct sigaction action = {.sa_handler = on_alarm,
                             .sa_flags = SA_RESTART | (on_its_own_stack ? SA_ONSTACK : 0)};
  if (sigaction(SIGALRM, &action, NULL) != 0) return 1;
  struct itimerval interval = {{0, 4000}, {0, 4000}};
  if (setitimer(ITIMER_REAL, &interval, NULL) != 0) return 1;
  interrupted_work(total);
  return 0;
}
