// checker: prints, as JSON, everything that a program inherits from the one that started it. Run with and
// without the profiler, the two must agree.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static void print_descriptors(void) {
  printf("\"fds\": {");
  DIR* directory = opendir("/proc/self/fd");
  const char* separator = "";
  for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(directory)) continue;
    char target[4096];
    const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    printf("%s\"%s\": ", separator, entry->d_name);
    print_text(target);
    separator = ", ";
  }
  printf("},\n");
  if (directory != NULL) closedir(directory);
}

static void print_signals(void) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  printf("\"signals\": [");
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

static void print_children(void) {
  // ECHILD is the proof that there is none; WNOWAIT leaves a zombie alone.
  siginfo_t info;
  const int result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
  printf("\"has_children\": %s,\n", result == -1 && errno == ECHILD ? "false" : "true");
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

static void print_scheduling(void) {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  printf("\"cpus\": %d, \"policy\": %d, \"nice\": %d,\n", CPU_COUNT(&cpus), sched_getscheduler(0),
         getpriority(PRIO_PROCESS, 0));
}

static void print_prctl(void) {
  printf("\"dumpable\": %d, \"no_new_privs\": %d, \"subreaper\": ", prctl(PR_GET_DUMPABLE),
         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  int subreaper = 0, death_signal = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  prctl(PR_GET_PDEATHSIG, &death_signal);
  printf("%d, \"death_signal\": %d, \"personality\": %d,\n", subreaper, death_signal,
         personality(0xffffffff));
}

int main(int argc, char** argv) {
  printf("{\n\"pid\": %d, \"ppid\": %d, \"pgid\": %d, \"sid\": %d,\n", getpid(), getppid(), getpgrp(),
         getsid(0));
  print_descriptors();
  print_signals();
  print_environment();
  print_children();
  print_limits();
  print_scheduling();
  print_prctl();
  print_file("oom_score_adj", "/proc/self/oom_score_adj");
  print_file("comm", "/proc/self/comm");
  const mode_t mask = umask(0);
  char directory[4096];
  printf("\"umask\": %d, \"cwd\": ", (int)mask);
  print_text(getcwd(directory, sizeof directory) == NULL ? "" : directory);
  printf(",\n\"arguments\": [");
  for (int i = 1; i < argc; ++i) {
    printf("%s", i == 1 ? "" : ", ");
    print_text(argv[i]);
  }
  printf("]\n}\n");
  return 0;
}
