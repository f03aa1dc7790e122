#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "elf/elf_file.hpp"
#include "elf/go_table.hpp"

namespace ddprof {

// The functions of a Go program as its runtime walks their stacks. It knows what the .debug_frame of Go does
// not: where the runtime moves to another stack. Foreign bytes: everything is checked when it is read.
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

  [[nodiscard]] std::size_t size() const { return table_.function_count; }
  // More stretches than this are no program's.
  [[nodiscard]] std::size_t max_stretches() const { return table_.sequences.size(); }
  [[nodiscard]] std::uint64_t begin_of(std::size_t index) const { return table_.begin_of(index); }
  [[nodiscard]] std::optional<Function> function(std::size_t index) const;

  // Calls take(address, bytes) for each stretch of the function, in order, until it says false: from this
  // address on, the return address lies that many bytes above the stack pointer. Returns up to where this is
  // known.
  template <typename Take>
  std::uint64_t for_each_stack_size(const Function& function, Take take) const {
    GoSequence sizes(table_, function.stack_sizes, function.begin, function.end);
    std::uint64_t known_until = function.begin;
    while (sizes.next() && sizes.value() >= 0 && take(sizes.begin(), sizes.value()))
      known_until = sizes.end();
    return known_until;
  }

 private:
  explicit GoFunctions(const GoTable& table) : table_(table) {}

  GoTable table_;
};

}  // namespace ddprof
