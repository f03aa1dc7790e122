// Starts and stops its profiler again and again while threads allocate. usage: api_cycles CYCLES THREADS
// OUTPUT Ends with what it has at the end and had after the first of them: descriptors and mappings.
#include <ddprof.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAlive = 64 };

static volatile int must_stop;

static void* churn(void* argument) {
  unsigned random = *(unsigned*)argument;
  char* blocks[kAlive] = {0};
  while (!must_stop) {
    random = random * 1664525 + 1013904223;
    char** block = &blocks[random >> 26];
    unsigned char mark = *block ? (unsigned char)**block : 0;
    if (*block && mark != (unsigned char)((unsigned long)*block >> 4)) abort();
    free(*block);
    *block = malloc(16 + (random >> 8) % 40000);
    if (*block) **block = (char)((unsigned long)*block >> 4);
  }
  for (int i = 0; i < kAlive; ++i) free(blocks[i]);
  return NULL;
}

static int count_descriptors(void) {
  DIR* folder = opendir("/proc/self/fd");
  int count = -1;
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count;
}

static int count_mappings(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  int count = 0, letter;
  while (maps && (letter = getc(maps)) != EOF) count += letter == '\n';
  if (maps) fclose(maps);
  return count;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int cycles = atoi(argv[1]), thread_count = atoi(argv[2]);
  pthread_t threads[64];
  unsigned seeds[64];
  for (int i = 0; i < thread_count; ++i) {
    seeds[i] = (unsigned)i * 7919 + 1;
    pthread_create(&threads[i], NULL, churn, &seeds[i]);
  }
  ddprof_options options = {.size = sizeof options};
  options.preset = "cpu_live_heap";
  options.output = argv[3];
  int descriptors = 0, mappings = 0, failures = 0, without_memory = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    if (ddprof_start(&options) != 0) {
      ++failures;
      printf("start %d: %s\n", cycle, ddprof_last_error());
      continue;
    }
    if (!(ddprof_status() & DDPROF_MEMORY)) ++without_memory;
    if (ddprof_stop() != 0) {
      ++failures;
      printf("stop %d: %s\n", cycle, ddprof_last_error());
    }
    if (cycle == 0) {
      descriptors = count_descriptors();
      mappings = count_mappings();
    }
  }
  printf("failures %d without_memory %d descriptors %d mappings %d\n", failures, without_memory,
         count_descriptors() - descriptors, count_mappings() - mappings);
  must_stop = 1;
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  return 0;
}
