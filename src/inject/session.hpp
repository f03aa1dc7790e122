#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ddprof.h"
#include "inject/profiler_process.hpp"
#include "wire/control.h"

namespace inject {

// What ddprof_last_error() returns. Texts are put together from parts; the last part is null.
void set_last_error(const char* first, const char* second = nullptr, const char* third = nullptr);
const char* last_error();

// The profiler that this process has started for itself, and the socket to it, which is the one descriptor
// that stays in the program. By one thread at a time.
class Session {
 public:
  bool start(const ddprof_options& options);
  bool stop();
  bool flush();
  int status();

  // Whether this process is the one that has started it. A child that was forked has its descriptor, and
  // closes it.
  void look_around();

 private:
  enum class Heard : uint8_t { answer, message, nothing, end };

  bool launch(const ddprof_options& options);
  bool await_start(uint64_t deadline, bool& has_spoken);
  // Until that answer has come. False: the profiler has ended, or time has passed.
  bool await(ddprof_control_answer answer, uint64_t deadline);
  // The next packet; what the profiler says to the user is the last error then.
  Heard hear(uint64_t deadline);
  // Of the last packet; null: it has no such text.
  [[nodiscard]] const char* text(size_t number) const;
  bool send(ddprof_control_command command) const;
  // Programs close descriptors that they do not know: then the number may mean something else by now.
  [[nodiscard]] bool has_socket() const;
  void adopt_socket(int fd);
  void close_socket();
  void end();

  int pid_ = 0;
  int socket_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  ProfilerProcess process_;
  uint64_t patience_ = 0;  // with the end
  bool has_memory_ = false;
  bool has_ended_ = false;  // by itself
  static char packet_[DDPROF_CONTROL_BYTES + 1];
  size_t packet_bytes_ = 0;
};

}  // namespace inject
