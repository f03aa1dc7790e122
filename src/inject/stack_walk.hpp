#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/stack_memory.hpp"
#include "wire/heap.h"

namespace inject {

// Where a walk begins: in the caller of the function that was sampled.
struct WalkStart {
  uint64_t pc, sp, fp;
};

enum class WalkEnd : uint8_t {
  complete,
  too_deep,
  no_rule,  // or one that needs other registers: the profiler has to finish it
};

struct WalkResult {
  WalkEnd end;
  uint32_t frames;
  uint64_t hash;
};

// The published unwind tables, and which modules this process has. Both are written by the profiler while
// they are read: each offset and count is checked.
class CodeTables {
 public:
  void use(const ddprof_heap_slot* slot) { slot_ = slot; }
  void use(const void* tables, uint64_t bytes) {
    __atomic_store_n(&tables_, static_cast<const char*>(tables), __ATOMIC_RELEASE);
    __atomic_store_n(&bytes_, bytes, __ATOMIC_RELEASE);  // last: it is read first
  }

  // The memory file of the tables is large and nearly empty. A program that locks all its memory, or may only
  // have so much address space, pays for what is mapped: so that is little more than is used. What was mapped
  // before stays: another thread may be reading there.
  bool map_tables(int fd);
  // There are none any more: zeros in their place.
  void empty();
  void map_more();
  [[nodiscard]] bool has_tables() const { return tables_ != nullptr; }
  [[nodiscard]] bool has_grown() const {
    const uint64_t bytes = __atomic_load_n(&bytes_, __ATOMIC_ACQUIRE);
    return bytes != 0 && bytes < DDPROF_HEAP_TABLES_BYTES &&
           __atomic_load_n(&header().used, __ATOMIC_RELAXED) > bytes;
  }

  // The rule of the code at `pc`. False: there is none.
  bool find_rule(uint64_t pc, ddprof_unwind_rule& rule) const;
  // Whether `pc` lies behind a call in code that has a table. `may_ask`: whether that code is still there can
  // be asked for.
  [[nodiscard]] bool is_behind_call(uint64_t pc, bool may_ask) const;

 private:
  [[nodiscard]] const ddprof_heap_module* find_module(uint64_t pc) const;
  [[nodiscard]] uint16_t find_in_table(uint64_t offset, uint64_t elf_address) const;
  template <typename Part>
  [[nodiscard]] const Part* at(uint64_t offset, uint64_t count = 1) const {
    const uint64_t bytes = __atomic_load_n(&bytes_, __ATOMIC_ACQUIRE);
    if (offset >= bytes || offset % alignof(Part) != 0 || count > (bytes - offset) / sizeof(Part))
      return nullptr;
    return reinterpret_cast<const Part*>(__atomic_load_n(&tables_, __ATOMIC_RELAXED) + offset);
  }
  [[nodiscard]] const ddprof_heap_tables& header() const {
    return *reinterpret_cast<const ddprof_heap_tables*>(__atomic_load_n(&tables_, __ATOMIC_RELAXED));
  }

  const ddprof_heap_slot* slot_ = nullptr;
  const char* tables_ = nullptr;
  uint64_t bytes_ = 0;
};

// Walks the stack of the calling thread by the tables. Return addresses go to `frames`.
WalkResult walk_stack(const WalkStart& start, const CodeTables& code, StackMemory& memory, uint64_t* frames,
                      size_t most);

}  // namespace inject
