// A process that is nobody's child: fork twice, and the one in the middle ends at once. It has no signal for
// its end, and is waited for by __WALL, as no other thread does.
//
// Where this process adopts orphans (it is the first of its PID namespace, or a subreaper) the profiler would
// become its child. There the one in the middle stays, with next to no memory and no descriptor, as the
// profiler's parent, and adopts what the profiler leaves behind. A process that has executed something always
// has SIGCHLD for its end, so the profiler itself cannot be that child.

#include "inject/profiler_process.hpp"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "inject/system_calls.hpp"

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // of this library, by the linker
extern "C" __attribute__((visibility("hidden"))) const char _end;

namespace inject {

namespace {

constexpr uint64_t kPage = 4096;
constexpr long kInterrupted = -4;  // EINTR

bool adopts_orphans() {
  int is_reaper = 0;
  system_call(SYS_prctl, PR_GET_CHILD_SUBREAPER, to_argument(&is_reaper));
  return is_reaper != 0 || system_call(SYS_getpid) == 1;
}

struct Range {
  uint64_t begin, end;
};

void unmap_all_but(Range (&kept)[3]) {
  for (int i = 0; i < 3; ++i) {
    for (int j = i + 1; j < 3; ++j) {
      if (kept[i].begin <= kept[j].begin) continue;
      const Range other = kept[i];
      kept[i] = kept[j];
      kept[j] = other;
    }
  }
  constexpr uint64_t kLast = (uint64_t{1} << 47U) - kPage;
  uint64_t place = kPage;
  const auto unmap_until = [&place](uint64_t begin, uint64_t end) {
    begin &= ~(kPage - 1);
    if (place < begin) unmap_memory(reinterpret_cast<void*>(place), begin - place);
    end = (end + kPage - 1) & ~(kPage - 1);
    if (place < end) place = end;
  };
  for (const Range& range : kept) unmap_until(range.begin, range.end);
  unmap_until(kLast, kLast);
}

// Handlers of the program must not run in a process that shares its memory.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() { change(~uint64_t{0}, &before_); }
  ~AllSignalsBlocked() { change(before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  static void change(uint64_t mask, uint64_t* before) {
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, to_argument(&mask), to_argument(before), sizeof mask);
  }
  uint64_t before_ = 0;
};

void say(int socket, const char* text) {
  size_t size = 0;
  while (text[size] != '\0') ++size;
  system_call(SYS_sendto, socket, to_argument(text), static_cast<long>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

// In the profiler, before it is one. errno and all other memory are those of the program: system calls alone.
int ProfilerProcess::run(void* self) {
  const ProfilerProcess& process = *static_cast<const ProfilerProcess*>(self);
  constexpr long kFirstOther = 3;
  const long socket = system_call(SYS_fcntl, process.socket_, F_DUPFD_CLOEXEC, kFirstOther);
  const long null = system_call(SYS_openat, AT_FDCWD, to_argument("/dev/null"), O_RDWR | O_CLOEXEC);
  system_call(SYS_dup3, socket, 0, 0);
  system_call(SYS_dup3, has_failed(null) ? socket : null, 1, 0);
  if (null == 1) system_call(SYS_fcntl, 1, F_SETFD, 0);
  system_call(SYS_dup3, socket, 2, 0);
  const sched_param no_priority{};
  system_call(SYS_sched_setscheduler, 0, SCHED_OTHER, to_argument(&no_priority));  // whatever the caller has
  system_call(SYS_execve, to_argument(process.path_), to_argument(process.arguments_),
              to_argument(process.environment_));
  say(2, "the program ddprof cannot be executed");
  system_call(SYS_exit_group, 127);
  return 127;
}

int ProfilerProcess::run_middle(void* self) {
  auto& process = *static_cast<ProfilerProcess*>(self);
  if (clone(run, process.stacks_ + 2 * kStackBytes, CLONE_VM, self) < 0)
    say(process.socket_, "no process can be made for ddprof");
  system_call(SYS_exit_group, 0);
  return 0;
}

// A copy of the program, which lets go of all that it has of it.
int ProfilerProcess::run_keeper(void* process) {
  auto& self = *static_cast<ProfilerProcess*>(process);
  system_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  const long child = clone(run, self.stacks_ + 2 * kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, process);
  if (child < 0) say(self.socket_, "no process can be made for ddprof");
  constexpr long kMostDescriptors = 65536;
  if (has_failed(system_call(SYS_close_range, 0, ~0U, 0)))
    for (long fd = 0; fd < kMostDescriptors; ++fd) system_call(SYS_close, fd);
  // The kernel writes to a place near the thread pointer whenever a thread goes on (rseq), and would end who
  // has none.
  constexpr uint64_t kThreadBefore = 256 * 1024, kThreadBehind = 16 * 1024;
  Range kept[] = {
      {reinterpret_cast<uint64_t>(&__ehdr_start), reinterpret_cast<uint64_t>(&_end)},
      {reinterpret_cast<uint64_t>(self.stacks_), reinterpret_cast<uint64_t>(self.stacks_) + 2 * kStackBytes},
      {thread_pointer() - kThreadBefore, thread_pointer() + kThreadBehind}};
  unmap_all_but(kept);
  for (long ended = child; ended > 0 || ended == kInterrupted;)
    ended = system_call(SYS_wait4, -1, 0, __WALL, 0);
  while (true) system_call(SYS_exit_group, 0);  // there is nothing to return to
}

long ProfilerProcess::launch(const char* path, const char* const* arguments, const char* const* environment,
                             int socket) {
  path_ = path;
  arguments_ = arguments;
  environment_ = environment;
  socket_ = socket;
  stacks_ = static_cast<char*>(
      map_memory(2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
  if (stacks_ == nullptr) return -12;  // ENOMEM
  const AllSignalsBlocked blocked;
  const bool has_keeper = adopts_orphans();
  const long child =
      clone(has_keeper ? run_keeper : run_middle, stacks_ + kStackBytes, has_keeper ? 0 : CLONE_VM, this);
  if (child < 0) {
    release_memory();
    return -11;  // EAGAIN
  }
  if (has_keeper) {
    keeper_ = static_cast<int>(child);
    return 0;
  }
  while (system_call(SYS_wait4, child, 0, __WALL, 0) == kInterrupted) {
  }
  return 0;
}

void ProfilerProcess::release_memory() {
  if (stacks_ != nullptr) unmap_memory(stacks_, 2 * kStackBytes);
  stacks_ = nullptr;
}

// The keeper ends right after the profiler. One that does not is left behind.
void ProfilerProcess::reap() {
  constexpr int kRounds = 1000;
  const timespec pause{0, 1'000'000};
  for (int i = 0; keeper_ != 0 && i < kRounds; ++i) {
    if (system_call(SYS_wait4, keeper_, 0, __WALL | WNOHANG, 0) != 0) keeper_ = 0;
    if (keeper_ != 0) system_call(SYS_nanosleep, to_argument(&pause), 0);
  }
  keeper_ = 0;
}

}  // namespace inject
