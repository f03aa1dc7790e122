/* Profiles the program that calls it: ddprof_start() launches the program `ddprof` as a separate process,
 * which attaches to this one as `ddprof -p PID` does. What it costs this process is in docs/overhead.md; how
 * it is done, and what is left in this process, in docs/api.md.
 *
 *   ddprof_options options = {.size = sizeof options};
 *   options.service = "shop";
 *   options.preset = "cpu_live_heap";
 *   if (ddprof_start(&options) != 0) fprintf(stderr, "not profiled: %s\n", ddprof_last_error());
 *
 * All functions may be called from any thread, at any time, except from signal handlers. None of them prints,
 * ends the program, or waits without a limit. After fork() the child is not profiled, until it calls
 * ddprof_start() itself. */
#ifndef DDPROF_H
#define DDPROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to profile, and where profiles go. Names and meanings are those of the options of `ddprof`
 * (docs/commands.md). What is null or 0 comes from the same environment variables and configuration file as
 * there. */
typedef struct ddprof_options {
  size_t size; /* sizeof(ddprof_options): newer versions of this header have more fields */

  const char* service;         /* --service, DD_SERVICE; else the name of the program */
  const char* environment;     /* --environment, DD_ENV */
  const char* service_version; /* --service-version, DD_VERSION */
  const char* tags;            /* --tags, DD_TAGS: "key:value,key:value" */

  const char* preset; /* --preset: "cpu_only", "cpu_live_heap", ... Those with allocations need the hooks of
                         this library in the program: see ddprof_status() */
  const char* event;  /* --event: "sCPU f=199;sALLOC p=65536" */

  const char* url;    /* --url, DD_TRACE_AGENT_URL: the agent */
  const char* output; /* --output: a file, or a folder for a file every period */

  const char*
      log_mode; /* --log-mode: a file, or "syslog". Without one, errors are in ddprof_last_error() alone */
  const char* log_level; /* --log-level */

  uint32_t upload_period; /* --upload-period: seconds that one profile covers */
  uint32_t cpu_duration;  /* --cpu-duration: seconds of each period in which CPU time is sampled */
  uint32_t frequency;     /* --frequency: samples for each second of CPU time */
  uint32_t exit_timeout;  /* --exit-timeout: seconds that the last upload may take */

  /* The program `ddprof`. Null: DD_PROFILING_NATIVE_DDPROF_EXE, else beside this library, else ../bin from
   * there, else in PATH. */
  const char* program;
  /* More options, as on the command line: {"--nice", "10", NULL}. */
  const char* const* arguments;
} ddprof_options;

/* Returns 0 when the profiler has attached, else -1: ddprof_last_error() says why, and the program goes on
 * without. Waits at most 30 seconds. `options` may be null. */
int ddprof_start(const ddprof_options* options);

/* The last profile is written or sent, and the profiler ends. Returns 0; or -1 when nothing was started, or
 * when it did not end in order within 60 seconds: the profiler is left behind then, to end by itself. */
int ddprof_stop(void);

/* The current period ends now, and its profile is written or sent before this returns (at most 60 seconds).
 * Needs periods: with a single file as output there are none, and this fails. */
int ddprof_flush(void);

/* What is being profiled: a sum of these. 0: nothing. */
enum {
  DDPROF_CPU = 1,    /* all events but allocations */
  DDPROF_MEMORY = 2, /* allocations. The hooks are in a program that is linked with this library, or was
                        started with it in LD_PRELOAD; not in one that has loaded it later (dlopen, ctypes) */
  DDPROF_ENDED = 4   /* the profiler was started, and has ended by itself since */
};
int ddprof_status(void);

/* What went wrong last, or what is missing although ddprof_start() has succeeded; "" when there is nothing.
 * One text for the whole process. It stays valid until seven more have replaced it. */
const char* ddprof_last_error(void);

/* Labels of the calling thread: samples of its CPU time have them, from now on until they are cleared or
 * replaced. They can be set whether or not a profiler runs. Returns 0; or -1 when there is no room: a value
 * has at most 255 bytes, all keys and values of a thread together 612, and there are at most 64 different
 * keys of up to 64 bytes in a process; or when another library publishes what threads do (docs/traces.md). */
int ddprof_label_set(const char* key, const char* value);
/* `key` null: all of them. */
int ddprof_label_clear(const char* key);

#ifdef __cplusplus
}
#endif

#endif
