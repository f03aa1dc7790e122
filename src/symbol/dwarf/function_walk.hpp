#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbol/dwarf/address_ranges.hpp"
#include "symbol/dwarf/attributes.hpp"
#include "symbol/dwarf/unit.hpp"

namespace ddprof {

// A function, or a call that was inlined into the one around it.
struct FunctionNode {
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::uint64_t entry = 0;       // offset of its entry
  std::uint32_t parent = kNone;  // the node that it was inlined into
  std::uint64_t call_file = 0;   // where that was
  std::uint32_t call_line = 0;
  std::uint32_t call_column = 0;
};

// Finds the functions and inlined calls of a unit that cover certain addresses. Goes through the entries in
// their order and builds no tree of them: what cannot matter is jumped over.
class FunctionWalk {
 public:
  // The addresses are sorted.
  FunctionWalk(const Unit& unit, std::span<const std::uint64_t> addresses, const CodeBounds& bounds);

  void run();
  [[nodiscard]] const FunctionNode& node(std::uint32_t index) const { return nodes_[index]; }
  // The innermost node at each of the addresses; kNone where there is none.
  [[nodiscard]] std::span<const std::uint32_t> innermost() const { return innermost_; }

 private:
  // The quick pass stays out of classes and of functions that cover no address. Functions with code may be in
  // there (nested functions of Ada, Fortran, GNU C): a thorough pass follows when something was not found.
  enum class Pass : std::uint8_t { quick, thorough };
  struct Function {
    AttributeValue low_pc;
    AttributeValue high_pc;
    AttributeValue ranges;
    FunctionNode node;
    std::uint64_t sibling = 0;
  };

  void walk(Pass pass);
  // False when the entry cannot be read.
  bool visit(ByteCursor& cursor, std::uint64_t entry, const Abbreviation& abbreviation, Pass pass);
  void enter_function(ByteCursor& cursor, std::uint64_t entry, const Abbreviation& abbreviation, Pass pass);
  Function read_function(ByteCursor& cursor, const Abbreviation& abbreviation) const;
  bool cover(const Function& function, bool is_inlined);
  bool cover(const AddressRange& range, std::uint32_t node, bool is_inlined);
  [[nodiscard]] bool takes_over(std::uint32_t current, bool is_inlined) const;
  void skip_entry(ByteCursor& cursor, const Abbreviation& abbreviation);
  void skip_children(ByteCursor& cursor, std::uint64_t sibling);

  const Unit& unit_;
  const AbbreviationTable& table_;
  std::span<const std::uint64_t> addresses_;
  const CodeBounds& bounds_;
  std::vector<FunctionNode> nodes_;
  std::vector<std::uint32_t> innermost_;
  std::vector<std::uint32_t> around_;  // the node around the children of each open entry
};

}  // namespace ddprof
