// heap_edges MODE: what programs do to an allocator that is not malloc and free. Ends with "done", or says
// what was wrong.
//   huge      sizes that no allocator has, by every function, and exceptions; then a leak of 2,000 blocks of
//   100,000 bytes errors    errno over many allocations that succeed signals   a handler that allocates, on a
//   stack of its own, and one that leaves by siglongjmp() forks     400 children one after the other, each
//   with a leak, by fork, _Fork, vfork and clone sandbox   a leak behind a filter that kills for whatever
//   malloc does not need cleared   a leak after the environment was cleared exec      a leak, then itself
//   with another one user      a child that becomes another user, with a leak limited   with 512 MiB of
//   address space threads   2,000 threads that allocate and end

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "burn.h"

namespace {

void use(void* block) { __asm__ volatile("" ::"r"(block) : "memory"); }

void check(bool is_right, const char* what) {
  if (is_right) return;
  printf("wrong: %s\n", what);
  exit(1);
}

NOINLINE void leak_here(int count, size_t size) {
  for (int i = 0; i < count; ++i) use(malloc(size));
}

NOINLINE void churn_here(int count, size_t size) {
  for (int i = 0; i < count; ++i) {
    void* block = malloc(size);
    use(block);
    free(block);
  }
}

template <typename Allocate>
bool throws(Allocate allocate) {
  try {
    use(allocate());
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

bool has_failed(void* block) {
  const bool is_right = block == nullptr && errno == ENOMEM;
  errno = 0;
  return is_right;
}

volatile size_t half = size_t{1} << 63U;
volatile size_t all = ~size_t{0};

void huge() {
  for (int i = 0; i < 100; ++i) {
    for (const size_t size : {size_t{all}, size_t{half}, half - 1, half + 1, size_t{1} << 62U}) {
      errno = 0;
      check(has_failed(malloc(size)), "malloc");
      check(has_failed(calloc(size, 1)), "calloc");
      check(has_failed(calloc(size, 16)), "calloc, product too large");
      check(has_failed(realloc(nullptr, size)), "realloc");
      check(has_failed(reallocarray(nullptr, size, 16)), "reallocarray");
      check(has_failed(aligned_alloc(64, size & ~size_t{63})), "aligned_alloc");
      check(has_failed(memalign(64, size)), "memalign");
      check(has_failed(valloc(size)), "valloc");
      check(has_failed(pvalloc(size)), "pvalloc");
      void* block = nullptr;
      check(posix_memalign(&block, 64, size) == ENOMEM, "posix_memalign");
      check(throws([&] { return ::operator new(size); }), "new");
      check(throws([&] { return ::operator new[](size); }), "new[]");
      if (size > all - 64) continue;  // of which libstdc++ 12 makes small ones
      check(throws([&] { return ::operator new (size, std::align_val_t{64}); }), "aligned new");
      check(::operator new(size, std::nothrow) == nullptr, "new nothrow");
      check(::operator new (size, std::align_val_t{64}, std::nothrow) == nullptr, "aligned new nothrow");
    }
    char* block = static_cast<char*>(malloc(300000));
    block[299999] = 7;
    check(realloc(block, half) == nullptr && block[299999] == 7, "a realloc that fails leaves the block");
    free(block);
    free(nullptr);
    use(realloc(malloc(600000), 0));
  }
  leak_here(2000, 100000);
}

void errors() {
  for (int i = 0; i < 20000; ++i) {
    errno = 4711;
    void* block = malloc(static_cast<size_t>(i) * 50);
    check(errno == 4711, "errno after malloc");
    block = realloc(block, static_cast<size_t>(i) * 60 + 1);
    check(errno == 4711, "errno after realloc");
    free(block);
    check(errno == 4711, "errno after free");
    ::operator delete(::operator new(1000000));
    check(errno == 4711, "errno after new and delete");
  }
}

volatile long handled;
sigjmp_buf back;

void allocate_in_handler(int) {
  churn_here(1, 1 << 20);
  handled = handled + 1;
}

void leave_handler(int) {
  churn_here(1, 1 << 20);
  siglongjmp(back, 1);
}

// The program is in no allocator when they come: that no program may do.
void signals() {
  static char stack[65536];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  check(sigaltstack(&other, nullptr) == 0, "sigaltstack");
  struct sigaction action {};
  action.sa_handler = allocate_in_handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = leave_handler;
  sigaction(SIGUSR2, &action, nullptr);
  for (int i = 0; i < 300; ++i) {
    raise(SIGUSR1);
    if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
    churn_here(1, 1 << 20);
  }
  check(handled == 300, "handlers");
  leak_here(2000, 100000);
}

// A child that shares memory with its parent until it ends.
int shared_child(void*) {
  churn_here(100, 100000);
  return 0;
}

pid_t fork_by(int way) {
  static char stack[262144];
  switch (way % 4) {
    case 0:
      return fork();
    case 1:
      return _Fork();
    case 2:
      return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    default:
      return clone(shared_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  }
}

void forks() {
  leak_here(2000, 100000);
  for (int i = 0; i < 400; ++i) {
    const pid_t pid = fork_by(i);
    check(pid >= 0, "fork");
    if (pid == 0) {
      churn_here(100, 100000);
      leak_here(100, 100000);
      _exit(0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid && status == 0, "child");
  }
}

void sandbox() {
  leak_here(10, 100);
  const uint32_t allowed[] = {SYS_brk,   SYS_mmap,       SYS_munmap, SYS_mremap,
                              SYS_write, SYS_exit_group, SYS_futex,  SYS_newfstatat};
  constexpr int kCount = sizeof allowed / sizeof allowed[0];
  sock_filter code[kCount + 3];
  code[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (int i = 0; i < kCount; ++i)
    code[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], static_cast<uint8_t>(kCount - i), 0);
  code[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  code[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{kCount + 3, code};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "filter");
  leak_here(2000, 100000);
}

void become_other_user() {
  const pid_t pid = fork();
  if (pid == 0) {
    check(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
    leak_here(2000, 100000);
    _exit(0);
  }
  int status = 0;
  check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

void limited(const char* program) {
  const rlimit limit{512 << 20, 512 << 20};
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  execl(program, program, "small", nullptr);
}

void small() {
  void* block = malloc(400 << 20);
  check(block != nullptr, "400 MiB of 512");
  free(block);
  churn_here(2000, 100000);
}

void* short_life(void*) {
  churn_here(10, 100000);
  return nullptr;
}

void threads() {
  for (int round = 0; round < 250; ++round) {
    pthread_t some[8];
    for (pthread_t& thread : some)
      check(pthread_create(&thread, nullptr, short_life, nullptr) == 0, "thread");
    for (const pthread_t thread : some) pthread_join(thread, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argument(argc, argv, 1, "huge");
  if (mode == "huge") huge();
  if (mode == "errors") errors();
  if (mode == "signals") signals();
  if (mode == "forks") forks();
  if (mode == "sandbox") sandbox();
  if (mode == "cleared") {
    clearenv();
    leak_here(2000, 100000);
  }
  if (mode == "exec") {
    churn_here(2000, 100000);
    for (int i = 0; i < 2000; ++i) use(calloc(1, 100000));
    execl(argv[0], argv[0], "leak", nullptr);
  }
  if (mode == "leak") leak_here(1000, 100000);
  if (mode == "user") become_other_user();
  if (mode == "limited") limited(argv[0]);
  if (mode == "small") small();
  if (mode == "threads") threads();
  const char done[] = "done\n";
  return write(1, done, sizeof done - 1) == sizeof done - 1 ? 0 : 1;
}
