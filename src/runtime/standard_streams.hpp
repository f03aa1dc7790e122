#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/unique_fd.hpp"

namespace ddprof {

// Standard streams that were closed when we were started are filled with nothing, until exec: otherwise the
// next file to be opened becomes standard error, and messages go into a profile. The target finds them closed
// again.
void fill_closed_standard_streams();

// A descriptor that takes and gives nothing: /dev/null, or one like it where there is no /dev. Close-on-exec.
[[nodiscard]] UniqueFd open_nothing();

// Closes all descriptors from `first` to `last`, both included.
void close_descriptors(unsigned first, unsigned last = ~0U);

// All of the text. A missing reader is no reason to end: neither by SIGPIPE nor otherwise.
void print_to(int fd, std::string_view text);
void print_to_standard_error(std::string_view text);

// Standard output or error of the user, for messages of a profiler that outlives the program it runs beside.
//
// The reader of a pipe waits for its last writer: `ddprof cmd | cat` has to end when cmd ends. So the
// profiler beside the program holds no pipe and no socket. To say a line it opens the pipe anew through the
// program that has it, /proc/PID/fd/2, for as long as one write takes, and only while that is still the same
// pipe. A socket cannot be opened like that: there the profiler is silent once it has let go.
class UserStream {
 public:
  // Remembers what the descriptor is, and that this process has it: the one that becomes the program.
  explicit UserStream(int descriptor);

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool is_terminal() const;
  // Whether the profiler beside the program may hold it: a file, a terminal, another device, or the socket of
  // systemd's journal, whose end is not waited for.
  [[nodiscard]] bool may_be_held() const;

  // One write, which never waits longer than a second. A missing reader is no reason to end.
  void print(std::string_view text) const;

 private:
  [[nodiscard]] bool is_same(int fd) const;

  int descriptor_;
  pid_t owner_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mode_t kind_ = 0;
};

}  // namespace ddprof
