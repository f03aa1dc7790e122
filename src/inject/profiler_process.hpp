#pragma once

#include <stddef.h>
#include <stdint.h>

namespace inject {

// Launches the profiler so that the program cannot tell that it has another process: no child that wait()
// sees, no signal when it ends, no zombie. Memory is shared with it until it executes, so that a launch takes
// as long in a large program as in a small one; and nothing waits for the file system that the profiler is
// on.
class ProfilerProcess {
 public:
  // The profiler has `socket` as its standard input and error. It is told there why it could not be executed.
  // Returns 0, or a negative error of the kernel. All that is pointed to is used until the other end of
  // `socket` is closed, or has something to say.
  long launch(const char* path, const char* const* arguments, const char* const* environment, int socket);
  // It has been heard of, or has ended: it uses nothing of this process any more.
  void release_memory();
  // After its end.
  void reap();

 private:
  static constexpr size_t kStackBytes = 16384;

  static int run(void* self);
  static int run_middle(void* self);
  static int run_keeper(void* self);

  const char* path_ = nullptr;
  const char* const* arguments_ = nullptr;
  const char* const* environment_ = nullptr;
  int socket_ = -1;
  char* stacks_ = nullptr;  // of the two processes that share our memory
  int keeper_ = 0;
};

}  // namespace inject
