#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace inject {

// The allocator of the program: what the next module behind us defines. Each begins as a function that finds
// all of them, once, and then does what it was called for. That is the first allocation of the process, long
// before there is a second thread: later the lock of the dynamic loader could be held by one that waits for
// us, or, in a child that was forked, by one that is not there.
struct RealFunctions {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);

  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  long (*syscall)(long, long, long, long, long, long, long);
  int (*setuid)(uid_t);
  int (*seteuid)(uid_t);
  int (*setreuid)(uid_t, uid_t);
  int (*setresuid)(uid_t, uid_t, uid_t);
  int (*setgid)(gid_t);
  int (*setresgid)(gid_t, gid_t, gid_t);
  int (*chroot)(const char*);
};
extern RealFunctions real;

// What `operator new` of the program is.
enum class NewKind : uint8_t {
  unknown,    // nothing was looked for yet
  plain,      // that of the C++ library, over malloc: ours goes to malloc directly
  allocator,  // of the same module as malloc: some of its forms do not come to us for memory
  other,      // over malloc as we define it, which counts
};
extern NewKind new_kind;
// The same, looked for if it is unknown.
NewKind known_new_kind();

// Whether what the program allocates comes to us. Not where we were loaded after it had begun.
bool has_hooks();

// Finds what is used rarely. Null: the program has none.
void* find_real(const char* name);
// Likewise of a C++ library, which may be one that only a module has that was loaded later.
void* find_in_cpp_library(const char* name);

// Blocks that were handed out while the real functions were being looked for. They are never freed: whoever
// frees a block looks at these first.
bool is_bootstrap_block(const void* block);
size_t bootstrap_block_size(const void* block);
void look_at_bootstrap_blocks();

}  // namespace inject
