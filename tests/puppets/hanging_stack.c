// hanging_stack FILE SECONDS: burns at the end of a deep stack whose outer half is backed by FILE.
//
// Says "ready" when it is down there, and waits for a line on standard input. Then it gives the pages of the
// outer half back, so that who reads them, and be it another process, waits for the file system of FILE; says
// "burning", and burns. It never returns through those frames itself.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "burn.h"

enum { HALF_BYTES = 512 * 1024, FRAME_BYTES = 4096, FRAMES = 200 };

static char* stack;
static int file;
static uint64_t burning_ns;
static volatile int is_over;  // never, but the compiler cannot know

NOINLINE void bottom(void) {
  char line[16];
  if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, line, sizeof line) < 0) _exit(1);
  if (madvise(stack + HALF_BYTES, HALF_BYTES, MADV_DONTNEED) != 0) _exit(1);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  if (write(STDOUT_FILENO, "burning\n", 8) != 8) _exit(1);
  burn_ns(burning_ns);
  if (!is_over) kill(getpid(), SIGKILL);
}

NOINLINE void descend(int frames) {
  char local[FRAME_BYTES];
  local[0] = (char)frames;
  __asm__ volatile("" : : "r"(local) : "memory");
  if (frames <= 1) {
    bottom();
  } else {
    descend(frames - 1);
  }
  KEEP_FRAME();
}

static void start(void) { descend(FRAMES); }

int main(int argc, char** argv) {
  file = open(argument(argc, argv, 1, ""), O_RDONLY | O_CLOEXEC);
  burning_ns = seconds_to_ns(argument(argc, argv, 2, "1"));
  const int protection = PROT_READ | PROT_WRITE;
  stack = mmap(NULL, 2 * HALF_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED ||
      mmap(stack + HALF_BYTES, HALF_BYTES, protection, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
    return perror("mmap"), 1;
  static ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = 2 * HALF_BYTES;
  makecontext(&context, start, 0);
  setcontext(&context);
  return 1;
}
