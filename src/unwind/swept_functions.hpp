#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elf/elf_file.hpp"
#include "unwind/function_ranges.hpp"

namespace ddprof {

// The starts of functions in a piece of code, sorted. `has_ended`: another function lies before it.
[[nodiscard]] std::vector<std::uint64_t> sweep_for_functions(std::span<const std::byte> code,
                                                             std::uint64_t begin, bool has_ended);

// Where functions begin in x86-64 code that neither symbols nor unwind information describe: hand-written
// assembly, stripped files without CFI. The instructions are read one after the other. A function begins
// where another calls it; and, aligned, behind an end (a return, a jump, a trap) that no branch before it
// leads over. Two functions may be taken for one, and an aligned part that only a distant jump leads to for a
// function.
//
// A view: the image must outlive it.
class SweptFunctions {
 public:
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20U;
  // Of one file, whatever is asked: about half a second (0.07 s for the 3 MiB of libcrypto).
  static constexpr std::uint64_t kMostBytes = 16 * kWindowBytes;

  explicit SweptFunctions(const ElfFile& file) : file_(file) {}

  // The function that covers this address: the one that unwind information tells of, or else one of the gap
  // between those.
  [[nodiscard]] std::optional<FunctionRange> find(std::uint64_t elf_address, const FunctionRanges& told);
  [[nodiscard]] std::optional<FunctionRange> find_in(FunctionRange gap, std::uint64_t elf_address);
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Window {
    std::uint64_t begin = 0;
    std::vector<std::uint64_t> starts{};
  };
  // The part of the gap that is in the same segment of code; empty: none.
  [[nodiscard]] FunctionRange code_in(FunctionRange gap, std::uint64_t elf_address) const;
  const Window* window_at(std::uint64_t begin, FunctionRange code);

  ElfFile file_;
  std::vector<Window> windows_;
  std::uint64_t swept_bytes_ = 0;
};

}  // namespace ddprof
