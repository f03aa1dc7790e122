// A server whose threads publish which request they work on, as OpenTelemetry's process and thread contexts
// say it (OTEPs 4719, 4947). usage: traced SECONDS [silent|late] [LIBRARY]
//
// Four threads serve requests of 0.3 to 20 ms of CPU time. Each is served in the function of its endpoint,
// which neither the request before nor the one after has, and has a span of its own: thread << 56 | endpoint
// << 48 | number. The context is set and taken back inside of that function, so that a sample in it has this
// context or none. Half of the threads write their record in place, the others swap pointers. Now and then a
// thread works without a context. "silent" publishes nothing, "late" only after a second; LIBRARY has the
// variable.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "publish_context.h"
#include "traced_context.h"

enum { kThreads = 4, kEndpoints = 4 };

struct record {
  uint8_t trace_id[16];
  uint8_t span_id[8];
  uint8_t valid;
  uint8_t flags;
  uint16_t attributes_size;
  uint8_t attributes[612];
} __attribute__((packed));

static void (*set_context)(void* record);
static double run_seconds;

static const char* const endpoints[kEndpoints] = {"/cart", "/pay", "/search", "/login"};

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct worker {
  int number;
  int writes_in_place;
  uint64_t requests;
  uint32_t random;
  struct record records[2];
};

static void add_attribute(struct record* record, int key, const char* text) {
  size_t length = strlen(text);
  uint8_t* at = record->attributes + record->attributes_size;
  at[0] = (uint8_t)key;
  at[1] = (uint8_t)length;
  memcpy(at + 2, text, length);
  record->attributes_size = (uint16_t)(record->attributes_size + 2 + length);
}

static void fill(struct record* record, const struct worker* worker, int endpoint) {
  uint64_t span = (uint64_t)(worker->number + 1) << 56 | (uint64_t)endpoint << 48 | worker->requests;
  char text[32];
  for (int i = 0; i < 8; ++i) record->span_id[i] = (uint8_t)(span >> (56 - 8 * i));
  memset(record->trace_id, 0xab, 8);
  memcpy(record->trace_id + 8, record->span_id, 8);
  record->attributes_size = 0;
  snprintf(text, sizeof text, "%016llx", (unsigned long long)(span ^ 1));
  add_attribute(record, 0, text);
  add_attribute(record, 1, endpoints[endpoint]);
  snprintf(text, sizeof text, "c%d", endpoint);
  add_attribute(record, 2, text);
}

static void begin(struct worker* worker, int endpoint) {
  struct record* record = &worker->records[worker->writes_in_place ? 0 : worker->requests % 2];
  *(volatile uint8_t*)&record->valid = 0;
  __asm__ volatile("" ::: "memory");
  fill(record, worker, endpoint);
  __asm__ volatile("" ::: "memory");
  *(volatile uint8_t*)&record->valid = 1;
  set_context(record);
}

static void end(struct worker* worker) {
  if (worker->writes_in_place)
    *(volatile uint8_t*)&worker->records[0].valid = 0;
  else
    set_context(NULL);
}

static void burn_for(double seconds) {
  double until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until) {
    for (volatile int i = 0; i < 2000; ++i) {
    }
  }
}

#define ENDPOINT(name, number)                                                        \
  __attribute__((noinline)) static void name(struct worker* worker, double seconds) { \
    begin(worker, number);                                                            \
    burn_for(seconds);                                                                \
    end(worker);                                                                      \
    __asm__ volatile("");                                                             \
  }
ENDPOINT(serve_cart, 0)
ENDPOINT(serve_pay, 1)
ENDPOINT(serve_search, 2)
ENDPOINT(serve_login, 3)

__attribute__((noinline)) static void work_without_context(double seconds) {
  burn_for(seconds);
  __asm__ volatile("");
}

static void serve(struct worker* worker) {
  static void (*const serving[kEndpoints])(struct worker*, double) = {serve_cart, serve_pay, serve_search,
                                                                      serve_login};
  worker->random = worker->random * 1664525 + 1013904223;
  double seconds = 0.0003 + (worker->random >> 16) / 65536.0 * 0.0197;
  serving[worker->requests % kEndpoints](worker, seconds);
  ++worker->requests;
  if (worker->requests % 5 == 0) work_without_context(0.003);
}

static void* run(void* argument) {
  struct worker* worker = argument;
  char name[16];
  snprintf(name, sizeof name, "worker-%d", worker->number);
  prctl(PR_SET_NAME, name);
  double until = seconds_of(CLOCK_MONOTONIC) + run_seconds;
  while (seconds_of(CLOCK_MONOTONIC) < until) serve(worker);
  return NULL;
}

// A field of protobuf that holds bytes; all are shorter than 128.
static size_t put(uint8_t* to, int field, const void* bytes, size_t size) {
  to[0] = (uint8_t)(field << 3 | 2);
  to[1] = (uint8_t)size;
  memmove(to + 2, bytes, size);
  return size + 2;
}

static size_t put_attribute(uint8_t* to, int field, const char* key, const uint8_t* value,
                            size_t value_size) {
  uint8_t pair[256];
  size_t size = put(pair, 1, key, strlen(key));
  size += put(pair + size, 2, value, value_size);
  return put(to, field, pair, size);
}

static size_t make_payload(uint8_t* to) {
  static const char* const keys[] = {"datadog.local_root_span_id", "http.route", "customer"};
  uint8_t value[256], array[256], text[128];
  const char* schema = "tlsdesc_v1_dev";
  size_t size =
      put_attribute(to, 2, "threadlocal.schema_version", value, put(value, 1, schema, strlen(schema)));
  size_t array_size = 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    size_t text_size = put(text, 1, keys[i], strlen(keys[i]));
    array_size += put(array + array_size, 1, text, text_size);
  }
  return size + put_attribute(to + size, 2, "threadlocal.attribute_key_map", value,
                              put(value, 5, array, array_size));
}

static void publish(void) {
  static uint8_t payload[1024];
  publish_context(payload, (uint32_t)make_payload(payload));
}

#ifndef TRACED_OWN_VARIABLE
static void find_variable(const char* library) {
  void* handle = dlopen(library, RTLD_NOW);
  *(void**)&set_context = handle ? dlsym(handle, "set_thread_context") : NULL;
  if (!set_context) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
}
#endif

int main(int argc, char** argv) {
  static struct worker workers[kThreads];
  pthread_t threads[kThreads];
  if (argc < 2) return 2;
  run_seconds = atof(argv[1]);
  const char* mode = argc > 2 ? argv[2] : "";
#ifdef TRACED_OWN_VARIABLE
  set_context = set_thread_context;
#else
  if (argc < 4) return 2;
  find_variable(argv[3]);
#endif
  if (strcmp(mode, "silent") != 0 && strcmp(mode, "late") != 0) publish();
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (struct worker){.number = i, .writes_in_place = i % 2, .random = 12345u * (unsigned)(i + 1)};
    pthread_create(&threads[i], NULL, run, &workers[i]);
  }
  if (strcmp(mode, "late") == 0) {
    sleep(1);
    publish();
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}
