#include "inject/command_line.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/session.hpp"
#include "inject/system_calls.hpp"
#include "wire/heap.h"

extern "C" __attribute__((weak)) char** environ;
extern "C" __attribute__((weak)) int dladdr(const void*, Dl_info*) noexcept;

namespace inject {

namespace {

size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

bool has_prefix(const char* text, const char* prefix) {
  while (*prefix != '\0' && *text == *prefix) ++text, ++prefix;
  return *prefix == '\0';
}

const char* const* variables() {
  static const char* const kNone[] = {nullptr};
  return &environ == nullptr || environ == nullptr ? kNone : environ;
}

// `name` ends with "=".
const char* variable(const char* name) {
  for (const char* const* entry = variables(); *entry != nullptr; ++entry)
    if (has_prefix(*entry, name)) return *entry + length_of(name);
  return nullptr;
}

// What is meant for this program, and not for another one.
bool is_inherited(const char* entry) {
  return !has_prefix(entry, "LD_PRELOAD=") && !has_prefix(entry, "LD_AUDIT=") &&
         !has_prefix(entry, DDPROF_HEAP_VARIABLE "=");
}

size_t count_of(const char* const* list) {
  size_t count = 0;
  while (list != nullptr && list[count] != nullptr) ++count;
  return count;
}

}  // namespace

bool CommandLine::try_program(const char* folder, size_t length, const char* rest) {
  const size_t rest_length = length_of(rest);
  if (length + rest_length + 1 > static_cast<size_t>(text_end_ - text_)) return false;
  for (size_t i = 0; i < length; ++i) text_[i] = folder[i];
  for (size_t i = 0; i <= rest_length; ++i) text_[length + i] = rest[i];
  path = text_;
  return !has_failed(system_call(SYS_faccessat, AT_FDCWD, to_argument(text_), X_OK));
}

bool CommandLine::find_program(const char* chosen) {
  if (chosen == nullptr) chosen = variable("DD_PROFILING_NATIVE_DDPROF_EXE=");
  if (chosen != nullptr && *chosen != '\0') {
    if (try_program(chosen, length_of(chosen), "")) return true;
    set_last_error("cannot execute ", chosen);
    return false;
  }
  Dl_info own{};
  if (&dladdr != nullptr && dladdr(reinterpret_cast<const void*>(&length_of), &own) != 0 &&
      own.dli_fname != nullptr) {
    size_t length = length_of(own.dli_fname);
    while (length > 0 && own.dli_fname[length - 1] != '/') --length;
    if (length > 0 &&
        (try_program(own.dli_fname, length, "ddprof") || try_program(own.dli_fname, length, "../bin/ddprof")))
      return true;
  }
  const char* folders = variable("PATH=");
  while (folders != nullptr && *folders != '\0') {
    size_t length = 0;
    while (folders[length] != '\0' && folders[length] != ':') ++length;
    if (length > 0 && try_program(folders, length, "/ddprof")) return true;
    folders += length + (folders[length] == ':' ? 1 : 0);
  }
  set_last_error("the program ddprof is neither beside libddprof.so nor in PATH");
  return false;
}

const char* CommandLine::number(uint64_t value) {
  char* end = text_ + 24;
  char* digit = end;
  *--digit = '\0';
  do *--digit = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  text_ = end;
  return digit;
}

void CommandLine::add(const char* name, const char* value) {
  if (value == nullptr) return;
  add(name);
  add(value);
}

void CommandLine::add(const char* name, uint32_t value) {
  if (value != 0) add(name, number(value));
}

bool CommandLine::make(const ddprof_options& options, int pid, bool has_hooks) {
  constexpr size_t kMostWords = 48;  // beside options.arguments
  const size_t words = count_of(options.arguments) + kMostWords;
  const size_t entries = count_of(variables()) + 1;
  bytes_ = (words + entries) * sizeof(char*) + kTextBytes;
  memory_ =
      static_cast<char*>(map_memory(bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory_ == nullptr) {
    set_last_error("no memory");
    return false;
  }
  arguments = reinterpret_cast<const char**>(memory_);
  environment = arguments + words;
  text_ = memory_ + (words + entries) * sizeof(char*);
  text_end_ = memory_ + bytes_;
  if (!find_program(options.program)) return false;
  text_ += length_of(path) + 1;
  if (text_end_ - text_ < 1024) {
    set_last_error("the path of ddprof is too long");
    return false;
  }
  add(path);
  add("--pid", number(static_cast<uint64_t>(pid)));
  add("--no-children");
  add("--controlled", has_hooks ? "hooked" : "bare");
  add("--quiet");
  add("--service", options.service);
  add("--environment", options.environment);
  add("--service-version", options.service_version);
  add("--tags", options.tags);
  add("--preset", options.preset);
  add("--event", options.event);
  add("--url", options.url);
  add("--output", options.output);
  add("--log-mode", options.log_mode);
  add("--log-level", options.log_level);
  add("--upload-period", options.upload_period);
  add("--cpu-duration", options.cpu_duration);
  add("--frequency", options.frequency);
  add("--exit-timeout", options.exit_timeout);
  for (size_t i = 0; i < count_of(options.arguments); ++i) add(options.arguments[i]);
  size_t inherited = 0;
  for (const char* const* entry = variables(); *entry != nullptr && inherited + 1 < entries; ++entry)
    if (is_inherited(*entry)) environment[inherited++] = *entry;
  return true;
}

void CommandLine::release() {
  if (memory_ != nullptr) unmap_memory(memory_, bytes_);
  memory_ = nullptr;
}

}  // namespace inject
