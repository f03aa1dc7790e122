#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "elf/work_budget.hpp"
#include "symbol/dwarf/code_bounds.hpp"
#include "symbol/dwarf/line_program.hpp"

namespace ddprof {

// A line, with its file as a number of the program that told it.
struct FoundLine {
  std::uint64_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool is_found = false;
};

// The lines of sorted addresses, in their order.
[[nodiscard]] std::vector<FoundLine> find_lines(const LineProgram& program,
                                                std::span<const std::uint64_t> addresses,
                                                const CodeBounds& bounds, WorkBudget& budget);

}  // namespace ddprof
