#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/elf_file.hpp"

namespace ddprof {

// The functions of a Go program, from the table that its runtime walks stacks by (pclntab, as of Go 1.18). It
// is there in stripped programs too, and knows what the .debug_frame of Go does not: where the runtime moves
// to another stack. Foreign bytes: everything is checked when it is read.
class GoFunctions {
 public:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_outermost = false;  // nothing called it: the first function of a goroutine or thread
    bool moves_stack = false;   // assigns the stack pointer: what is above its frame belongs to others
    std::uint32_t stack_sizes = 0;
  };

  // None without such a table, or with one of a version that is not known.
  static std::optional<GoFunctions> find(const ElfFile& file);

  [[nodiscard]] std::size_t size() const { return count_; }
  // More stretches than this are no program's.
  [[nodiscard]] std::size_t max_stretches() const { return size_bytes_.size(); }
  [[nodiscard]] std::uint64_t begin_of(std::size_t index) const;
  [[nodiscard]] std::optional<Function> function(std::size_t index) const;

  // Calls take(address, bytes) for each stretch of the function, in order: from this address on, the return
  // address lies that many bytes above the stack pointer. Returns up to where this is known.
  template <typename Take>
  std::uint64_t for_each_stack_size(const Function& function, Take take) const {
    StackSizes sizes(size_bytes_, function);
    while (sizes.next()) take(sizes.begin, sizes.bytes);
    return sizes.next_begin;
  }

 private:
  // Pairs of numbers: how much the size changes, and for how many bytes of code it stays so.
  struct StackSizes {
    StackSizes(std::span<const std::byte> all, const Function& function);
    bool next();

    std::span<const std::byte> left;
    std::uint64_t begin = 0;
    std::int32_t bytes = -1;
    bool is_first = true;
    std::uint64_t next_begin;
    std::uint64_t end;
  };

  std::span<const std::byte> table_;       // entries, then what they point to
  std::span<const std::byte> size_bytes_;  // sequences of stack sizes
  std::size_t count_ = 0;
  std::uint64_t code_start_ = 0;
  bool has_start_lines_ = false;
};

}  // namespace ddprof
