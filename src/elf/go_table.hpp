#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/elf_file.hpp"

namespace ddprof {

// The parts of the table that Go's runtime walks and names stacks by (pclntab, as of Go 1.18). It is there in
// stripped programs too. Foreign bytes: the parts lie inside of the file, what they say is checked by those
// who read it.
struct GoTable {
  std::uint64_t address = 0;  // of the header
  std::uint64_t code_start = 0;
  std::size_t function_count = 0;
  std::uint8_t step = 1;                 // bytes of code that sequences count by
  bool has_start_lines = false;          // as of 1.20
  std::span<const std::byte> functions;  // where each begins and where its description is, then descriptions
  std::uint64_t names_address = 0;
  std::span<const std::byte> names;
  std::span<const std::byte> units;  // of each compiled package, where the names of its files are
  std::span<const std::byte> files;
  std::span<const std::byte> sequences;  // pairs of numbers: a change, and for how many steps it holds

  // None without such a table, or with one of a version that is not known.
  static std::optional<GoTable> find(const ElfFile& file);

  // What descriptions point to outside of the table, such as inlined calls. Found through the data that the
  // runtime keeps of its program; empty when that is not found.
  [[nodiscard]] std::span<const std::byte> find_function_data(const ElfFile& file) const;

  static constexpr std::uint64_t kEntryBytes = 8;  // offset of the code, offset of the description
  [[nodiscard]] std::uint64_t begin_of(std::size_t index) const;
};

// One sequence of the table: a value that changes along the code of a function.
class GoSequence {
 public:
  // `offset` 0 means that there is none.
  GoSequence(const GoTable& table, std::uint32_t offset, std::uint64_t begin, std::uint64_t end);

  // Goes to the next stretch of code; false at the end.
  bool next();

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return next_begin_; }
  [[nodiscard]] std::int32_t value() const { return value_; }

 private:
  std::span<const std::byte> left_;
  std::uint64_t begin_;
  std::uint64_t next_begin_;
  std::uint64_t limit_;
  std::int32_t value_ = -1;
  std::uint8_t step_;
  bool is_first_ = true;
};

// The functions of a Go program as its runtime walks their stacks. It knows what the .debug_frame of Go does
// not: where the runtime moves to another stack. Foreign bytes: everything is checked when it is read.
class GoFunctions {
 public:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_outermost = false;         // nothing called it: the first function of a goroutine or thread
    bool moves_stack = false;          // assigns the stack pointer: what is above its frame belongs to others
    bool keeps_frame_pointer = false;  // moves to the system stack with the frame pointer of its caller
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
