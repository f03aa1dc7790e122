#pragma once

#include <stdint.h>

#include "inject/stack_walk.hpp"
#include "wire/heap.h"

namespace inject {

// What connects this process with its profiler: the slot of the arena, and the tables.
//
// Nothing happens before the first sample is due. Then the arena is opened by the path that the environment
// names, a free slot is claimed and mapped, and every descriptor is closed again: a program that closes or
// counts descriptors sees none of ours. The system calls are those that the dynamic loader has just made too
// (openat, fstat, mmap, munmap, close), and madvise, prlimit64, readlinkat. Nothing waits for the profiler.
class Attachment {
 public:
  enum class State : uint8_t {
    unknown,    // the environment was not looked at
    dormant,    // there is no profiler
    wanted,     // there is one
    attaching,  // by another thread
    attached,
    forgetting,  // the parent, by another thread
    off,         // it could not be had, or must not be
  };

  // While there is one thread, and before the program can have cleared its environment.
  void read_environment_early();
  // To be called before anything else in the slow path.
  void look_around() {
    const State now = state();
    if (now == State::unknown) read_environment();
    if ((now == State::attached || now == State::attaching) && alive_ != nullptr && !is_alive())
      forget_parent(now);
  }
  // The interval to sample with; 0: never.
  [[nodiscard]] uint64_t interval() const;
  // The slot, attaching to it if that has not been tried; null: there is none.
  ddprof_heap_slot* slot();
  // The slot of a process that is attached, and was not forked since.
  [[nodiscard]] ddprof_heap_slot* own_slot() const {
    return state() == State::attached && is_alive() ? slot_ : nullptr;
  }
  // With more of the tables mapped, if there are more by now.
  const CodeTables& code() {
    if (code_.has_grown() && !is_sandboxed_) code_.map_more();
    return code_;
  }
  // No system call may be made any more: the process closes a sandbox behind itself.
  [[nodiscard]] bool is_sandboxed() const { return is_sandboxed_; }

  void before_sandbox(bool is_strict);
  // By ddprof_start(), one thread at a time: the program has a profiler, whose arena is there. False: it
  // cannot be had.
  bool begin(const char* location);
  // It has none any more. A thread that is taking a sample goes on in memory that nobody reads.
  void end();
  // There is one that the program did not start.
  [[nodiscard]] bool is_taken() {
    look_around();
    return state() != State::dormant && state() != State::off;
  }

  // To where the profiler cannot be reached, perhaps.
  void before_departure() {
    look_around();
    slot();
  }
  [[nodiscard]] State state() const { return static_cast<State>(__atomic_load_n(&state_, __ATOMIC_ACQUIRE)); }

 private:
  void set_state(State state) { __atomic_store_n(&state_, static_cast<uint8_t>(state), __ATOMIC_RELEASE); }
  // By one thread of all that try.
  bool change_state(State from, State to) {
    auto expected = static_cast<uint8_t>(from);
    return __atomic_compare_exchange_n(&state_, &expected, static_cast<uint8_t>(to), false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
  }
  // False in a child that was forked.
  [[nodiscard]] bool is_alive() const { return __atomic_load_n(alive_, __ATOMIC_ACQUIRE) != 0; }
  void read_environment();
  bool parse(const char* text);
  void forget_parent(State before);
  bool attach();
  bool claim(int arena, ddprof_heap_header& header);
  bool map_slot(int arena, const ddprof_heap_header& header, uint32_t number);
  void empty_slot(void* memory);
  bool map_alive();
  bool map_tables(uint32_t descriptor);

  static constexpr uint32_t kLongestPath = 64;
  // While there is no profiler: as if there were one, so that samples are right from its first byte on.
  static constexpr uint64_t kDormantInterval = 524288;

  uint8_t state_ = static_cast<uint8_t>(State::unknown);  // clang has no atomic operations on enums
  bool is_sandboxed_ = false;
  bool is_begun_ = false;  // by begin(): children that are forked have no profiler
  char path_[kLongestPath]{};
  uint32_t folder_length_ = 0;  // of the path, up to the number of the descriptor
  uint64_t nonce_ = 0;
  uint64_t first_interval_ = 0;
  ddprof_heap_slot* slot_ = nullptr;
  uint64_t slot_bytes_ = 0;
  uint32_t* alive_ = nullptr;  // in a page that is zero in forked children
  CodeTables code_;
};

extern Attachment attachment;

}  // namespace inject
