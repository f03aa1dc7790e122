#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// One executable mapping of a process: code of a file, the vdso, or anonymous code written by a JIT compiler.
struct Module {
  Address start;  // at run time
  Address end;
  std::uint64_t bias = 0;  // run-time address = address in the ELF file + bias; 0 for anonymous code
  const UnwindTable* table = nullptr;  // null: no unwind information is known
  FileId file = FileId::none;          // none: anonymous, frames keep their run-time address
  std::span<const std::byte> code;     // the bytes at [start, ...), as far as they are known; may be empty
  bool is_generated = false;           // its code and table change while the process runs
  std::uint64_t entry = 0;  // ELF address of the entry point, the root of the first thread; 0: none

  [[nodiscard]] bool contains(Address address) const { return address >= start && address < end; }
  [[nodiscard]] std::uint64_t elf_address(std::uint64_t runtime_address) const {
    return runtime_address - bias;
  }
  // The known code from this run-time address on.
  [[nodiscard]] std::span<const std::byte> code_at(std::uint64_t runtime_address) const;
  // Up to `count` bytes of known code that end just before this run-time address.
  [[nodiscard]] std::span<const std::byte> code_before(std::uint64_t runtime_address,
                                                       std::size_t count) const;
};

// All executable mappings of one process, sorted. Neither tables nor code are owned. One thread at a time,
// readers included: a look-up remembers its answer for the next one.
class ModuleMap {
 public:
  static constexpr std::uint32_t kNotFound = UINT32_MAX;

  ModuleMap();

  // Like mmap: whatever the new module overlaps is cut away or split first.
  void add(const Module& module);
  // Like munmap.
  void remove(Address start, Address end);
  void clear();

  [[nodiscard]] std::uint32_t find_index(Address address) const {
    if (last_hit_ < modules_.size() && modules_[last_hit_].contains(address)) return last_hit_;
    return search(address);
  }
  [[nodiscard]] const Module* find(Address address) const {
    const std::uint32_t index = find_index(address);
    return index == kNotFound ? nullptr : &modules_[index];
  }
  [[nodiscard]] const Module& operator[](std::uint32_t index) const { return modules_[index]; }
  [[nodiscard]] std::span<const Module> modules() const { return modules_; }

  // Names this very content: no other map, and not this one before or after a change, has the same number.
  // Caches that remember something about an address keep it beside it. Change modules through add() only.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

 private:
  [[nodiscard]] std::uint32_t search(Address address) const;
  void cut(Address start, Address end);

  std::vector<Module> modules_;
  mutable std::uint32_t last_hit_ = 0;
  std::uint32_t generation_;
};

}  // namespace ddprof
