// checker [to=FILE] …: prints, as JSON, everything that a program inherits from the one that started it. Run
// with and without the profiler, the two must agree. Works without /proc and with closed standard streams.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void print_text(const char* text) {
  putchar('"');
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      printf("\\%c", c);
    } else if (c < 0x20 || c >= 0x7f) {
      printf("\\u%04x", c);
    } else {
      putchar(c);
    }
  }
  putchar('"');
}

// Where a link of /proc leads; empty without /proc.
static void print_link(const char* path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path, target, sizeof target - 1);
  target[length < 0 ? 0 : length] = '\0';
  print_text(target);
}

// Asked one by one, for /proc may be absent. With their flags and positions: nothing has read from them.
static void print_descriptors(void) {
  printf("\"fds\": {");
  const char* separator = "";
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    printf("%s\n  \"%d\": {\"flags\": %d, \"status\": %d, \"position\": %lld, \"file\": ", separator, fd,
           flags, fcntl(fd, F_GETFL), (long long)lseek(fd, 0, SEEK_CUR));
    print_link(path);
    printf("}");
    separator = ",";
  }
  printf("},\n");
}

static void print_signals(void) {
  sigset_t blocked, pending;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  sigpending(&pending);
  printf("\"pending\": [");
  const char* separator = "";
  for (int signal = 1; signal < 65; ++signal) {
    if (sigismember(&pending, signal) != 1) continue;
    printf("%s%d", separator, signal);
    separator = ", ";
  }
  printf("],\n\"signals\": [");
  for (int signal = 1; signal < 65; ++signal) {
    struct sigaction action;
    const int known = sigaction(signal, NULL, &action) == 0;
    const char* handler = !known                         ? "?"
                          : action.sa_handler == SIG_DFL ? "default"
                          : action.sa_handler == SIG_IGN ? "ignored"
                                                         : "handled";
    printf("%s[%d, \"%s\", %d]", signal == 1 ? "" : ", ", signal, handler, sigismember(&blocked, signal));
  }
  printf("],\n");
}

static void print_environment(void) {
  printf("\"env\": [");
  for (char** variable = environ; *variable != NULL; ++variable) {
    printf("%s", variable == environ ? "" : ", ");
    print_text(*variable);
  }
  printf("],\n");
}

// ECHILD is the proof that there is none; WNOWAIT leaves a zombie alone.
static int has_children(int kinds) {
  siginfo_t info;
  return !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | kinds) == -1 && errno == ECHILD);
}

// Whoever ran here before us may have waited for children of its own.
static void print_children(void) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  printf("\"has_children\": %s, \"has_silent_children\": %s, \"had_children\": %s,\n",
         has_children(0) ? "true" : "false", has_children(__WALL) ? "true" : "false",
         usage.ru_maxrss != 0 ? "true" : "false");
}

static void print_limits(void) {
  printf("\"limits\": [");
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)resource, &limit);
    printf("%s[%lld, %lld]", resource == 0 ? "" : ", ", (long long)limit.rlim_cur, (long long)limit.rlim_max);
  }
  printf("],\n");
}

static void print_file(const char* key, const char* path) {
  char text[256] = "";
  FILE* file = fopen(path, "r");
  if (file != NULL) {
    if (fgets(text, sizeof text, file) == NULL) text[0] = '\0';
    fclose(file);
  }
  printf("\"%s\": ", key);
  text[strcspn(text, "\n")] = '\0';
  print_text(text);
  printf(",\n");
}

static int begins_with_one_of(const char* line, const char* const* beginnings) {
  for (; *beginnings != NULL; ++beginnings) {
    if (strncmp(line, *beginnings, strlen(*beginnings)) == 0) return 1;
  }
  return 0;
}

// Capabilities, signals, tracer, seccomp, groups: all lines but process ids, and what differs from run to
// run.
static void print_status(void) {
  static const char* const skipped[] = {"Pid:",   "Tgid:",    "Ngid:",       "PPid:",  "NS",
                                        "Vm",     "Rss",      "SigQ",        "Huge",   "volu",
                                        "nonvol", "Kthread:", "CoreDumping", "FDSize", NULL};
  printf("\"status\": [");
  char line[4096];
  FILE* file = fopen("/proc/self/status", "r");
  const char* separator = "";
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (begins_with_one_of(line, skipped)) continue;
    printf("%s\n  ", separator);
    print_text(line);
    separator = ",";
  }
  printf("],\n");
  if (file != NULL) fclose(file);
}

static void print_places(void) {
  static const char* const links[] = {"root",   "cwd",     "exe",    "ns/cgroup", "ns/ipc", "ns/mnt",
                                      "ns/net", "ns/time", "ns/pid", "ns/user",   "ns/uts", NULL};
  printf("\"places\": {");
  for (const char* const* link = links; *link != NULL; ++link) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", *link);
    printf("%s\n  \"%s\": ", link == links ? "" : ",", *link);
    print_link(path);
  }
  printf("},\n");
}

static void print_scheduling(void) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  printf("\"cpus\": [");
  const char* separator = "";
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    printf("%s%d", separator, cpu);
    separator = ", ";
  }
  struct sched_param parameters = {0};
  sched_getparam(0, &parameters);
  const int this_process = 1;
  printf("], \"policy\": %d, \"priority\": %d, \"nice\": %d, \"io_priority\": %ld,\n", sched_getscheduler(0),
         parameters.sched_priority, getpriority(PRIO_PROCESS, 0), syscall(SYS_ioprio_get, this_process, 0));
}

static void print_timers(void) {
  printf("\"timers\": [");
  for (int timer = ITIMER_REAL; timer <= ITIMER_PROF; ++timer) {
    struct itimerval value;
    getitimer(timer, &value);
    printf("%s%d", timer == ITIMER_REAL ? "" : ", ",
           value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0);
  }
  printf("],\n");
}

static void print_prctl(void) {
  printf(
      "\"dumpable\": %d, \"no_new_privs\": %d, \"keep_caps\": %d, \"secure_bits\": %d, \"timer_slack\": %d, ",
      prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_KEEPCAPS),
      prctl(PR_GET_SECUREBITS), prctl(PR_GET_TIMERSLACK));
  printf("\"huge_pages_off\": %d, \"machine_checks\": %d, \"secure_exec\": %lu, \"subreaper\": ",
         prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), getauxval(AT_SECURE));
  int subreaper = 0, death_signal = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  prctl(PR_GET_PDEATHSIG, &death_signal);
  printf("%d, \"death_signal\": %d, \"personality\": %d,\n", subreaper, death_signal,
         personality(0xffffffff));
}

static void print_identity(void) {
  uid_t users[3];
  gid_t groups[3], others[64];
  getresuid(&users[0], &users[1], &users[2]);
  getresgid(&groups[0], &groups[1], &groups[2]);
  printf("\"users\": [%u, %u, %u], \"groups\": [%u, %u, %u], \"other_groups\": [", users[0], users[1],
         users[2], groups[0], groups[1], groups[2]);
  const int count = getgroups(64, others);
  for (int i = 0; i < count; ++i) printf("%s%u", i == 0 ? "" : ", ", others[i]);
  printf("],\n");
}

// A process id, or how it is related to us: that does not change from run to run.
static void print_relation(const char* key, pid_t pid) {
  printf("\"%s\": ", key);
  if (pid == getpid()) {
    printf("\"self\", ");
  } else {
    printf("%d, ", pid);
  }
}

int main(int argc, char** argv) {
  int first = 1;
  char directory[PATH_MAX];
  const mode_t mask = umask(0);
  umask(mask);
  if (argc > 1 && strncmp(argv[1], "to=", 3) == 0) ++first;
  // Into memory first: the file that takes the report must not be part of it.
  char* report = NULL;
  size_t length = 0;
  FILE* const memory = open_memstream(&report, &length);
  if (memory == NULL) return 1;
  FILE* const terminal = stdout;
  stdout = memory;
  printf("{\n\"pid\": %d, \"ppid\": %d,\n", getpid(), getppid());
  print_relation("pgid", getpgrp());
  print_relation("sid", getsid(0));
  printf("\"terminal_group\": %d,\n", tcgetpgrp(STDIN_FILENO));
  print_descriptors();
  print_signals();
  print_environment();
  print_children();
  print_limits();
  print_identity();
  print_status();
  print_places();
  print_scheduling();
  print_timers();
  print_prctl();
  print_file("oom_score_adj", "/proc/self/oom_score_adj");
  print_file("core_dumps", "/proc/self/coredump_filter");
  print_file("cgroup", "/proc/self/cgroup");
  print_file("posix_timers", "/proc/self/timers");
  print_file("comm", "/proc/self/comm");
  printf("\"umask\": %d, \"cwd\": ", (int)mask);
  print_text(getcwd(directory, sizeof directory) == NULL ? "" : directory);
  printf(",\n\"arguments\": [");
  for (int i = first; i < argc; ++i) {
    printf("%s", i == first ? "" : ", ");
    print_text(argv[i]);
  }
  printf("]\n}\n");
  fclose(memory);
  FILE* const output = first == 2 ? fopen(argv[1] + 3, "w") : terminal;
  return output != NULL && fwrite(report, 1, length, output) == length && fflush(output) == 0 ? 0 : 1;
}
