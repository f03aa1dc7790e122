#pragma once

#include <stddef.h>

#include "ddprof.h"

namespace inject {

// What the profiler is executed with, in memory of its own: path, arguments and environment.
class CommandLine {
 public:
  CommandLine() = default;
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // False: there is no memory, or no program, which set_last_error() has been told.
  bool make(const ddprof_options& options, int pid, bool has_hooks);
  // Not while a process may still use it.
  void release();

  const char* path = nullptr;
  const char** arguments = nullptr;
  const char** environment = nullptr;

 private:
  static constexpr size_t kTextBytes = 8192;

  bool find_program(const char* chosen);
  bool try_program(const char* folder, size_t length, const char* rest);
  const char* number(uint64_t value);
  void add(const char* word) { arguments[count_++] = word; }
  void add(const char* name, const char* value);
  void add(const char* name, uint32_t value);

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  char* text_ = nullptr;  // what is free of it
  char* text_end_ = nullptr;
  size_t count_ = 0;
};

}  // namespace inject
