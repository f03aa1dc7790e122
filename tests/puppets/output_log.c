// For LD_PRELOAD: writes a line to the file $OUTPUT_LOG for each fork, and for each perf event that is sent
// to a ring.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int log_file = -1;

static void note(const char* line) {
  if (log_file >= 0 && write(log_file, line, strlen(line)) < 0) abort();
}

__attribute__((constructor)) static void open_log(void) {
  const char* path = getenv("OUTPUT_LOG");
  if (path != NULL) log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

pid_t fork(void) {
  pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  const pid_t child = next();
  if (child > 0) note("fork\n");
  return child;
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == PERF_EVENT_IOC_SET_OUTPUT) note("set output\n");
  int (*next)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
  return next(fd, request, argument);
}
