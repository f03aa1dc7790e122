#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbol/dwarf/code_bounds.hpp"
#include "symbol/dwarf/debug_info.hpp"
#include "symbol/dwarf/function_names.hpp"
#include "symbol/dwarf/function_walk.hpp"
#include "symbol/dwarf/line_lookup.hpp"
#include "symbol/dwarf/split_units.hpp"

namespace ddprof {

// Puts together what one unit says about addresses: functions and inlined calls, their names, and the lines.
class UnitCalls {
 public:
  UnitCalls(const CodeBounds& bounds, DebugFileSource& others, DwarfProblem& problem, WorkBudget& budget)
      : bounds_(bounds), budget_(budget), split_units_(others, problem, budget) {}

  // Addresses are sorted. Those that neither a function nor a line covers are not given.
  void find(const Unit& unit, std::span<const std::uint64_t> addresses, const DebugInfo::Take& take);
  [[nodiscard]] std::size_t memory_bytes() const {
    return split_units_.memory_bytes() + names_.memory_bytes();
  }

 private:
  void chain(const Unit& unit, const FunctionWalk& walk, std::uint32_t node, const FoundLine& line,
             const LineProgram* program);
  std::string_view path(const LineProgram* program, std::uint64_t file);

  const CodeBounds& bounds_;
  WorkBudget& budget_;
  SplitUnits split_units_;
  FunctionNames names_;
  std::unordered_map<std::uint64_t, std::string> paths_;  // of the files of the unit that were used
  std::size_t path_bytes_ = 0;
  std::vector<SourceCall> calls_;
};

}  // namespace ddprof
