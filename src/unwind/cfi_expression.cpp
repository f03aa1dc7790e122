#include "unwind/cfi_expression.hpp"

#include <dwarf.h>

#include <array>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

std::int64_t wrapping_add(std::int64_t left, std::int64_t right) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
}
std::int64_t wrapping_negate(std::int64_t value) {
  return static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(value));
}

// The constant that an operation pushes, if that is what it does.
std::optional<std::int64_t> read_constant(std::uint8_t operation, ByteCursor& cursor) {
  if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31) return operation - DW_OP_lit0;
  switch (operation) {
    case DW_OP_const1u:
      return cursor.u8();
    case DW_OP_const1s:
      return cursor.read<std::int8_t>();
    case DW_OP_const2u:
      return cursor.read<std::uint16_t>();
    case DW_OP_const2s:
      return cursor.read<std::int16_t>();
    case DW_OP_const4u:
      return cursor.read<std::uint32_t>();
    case DW_OP_const4s:
      return cursor.read<std::int32_t>();
    case DW_OP_const8u:
    case DW_OP_const8s:
      return cursor.read<std::int64_t>();
    case DW_OP_constu:
      return static_cast<std::int64_t>(cursor.uleb());
    case DW_OP_consts:
      return cursor.sleb();
    default:
      return std::nullopt;
  }
}

// register + offset, if that is what the operation pushes.
std::optional<CfiAddress> read_register(std::uint8_t operation, ByteCursor& cursor) {
  if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31) {
    return CfiAddress{.base_register = static_cast<std::uint64_t>(operation - DW_OP_breg0),
                      .inner = cursor.sleb()};
  }
  if (operation != DW_OP_bregx) return std::nullopt;
  const std::uint64_t number = cursor.uleb();
  return CfiAddress{.base_register = number, .inner = cursor.sleb()};
}

// Those of compilers have a dozen bytes. Each is evaluated again for every row that it holds for.
constexpr std::size_t kMaxExpressionBytes = 256;

// Evaluates with one address and one constant at most: no expression of the forms above needs more.
class Simplifier {
 public:
  Simplifier(std::span<const std::byte> expression, bool cfa_is_pushed) : cursor_(expression) {
    if (cfa_is_pushed) address_ = CfiAddress{.base_register = CfiAddress::kCfa};
  }

  std::optional<CfiAddress> run() {
    while (!cursor_.at_end()) {
      if (!step()) return std::nullopt;
    }
    if (cursor_.failed() || constant_) return std::nullopt;
    return address_;
  }

 private:
  bool step() {
    const std::uint8_t operation = cursor_.u8();
    if (const auto value = read_constant(operation, cursor_)) {
      if (constant_) return false;
      constant_ = value;
      return true;
    }
    // A register operand on top of a pushed CFA hides it, which is what the compilers mean.
    if (const auto address = read_register(operation, cursor_)) {
      if (constant_ || (address_ && address_->base_register != CfiAddress::kCfa)) return false;
      address_ = address;
      return true;
    }
    if (!address_) return false;
    return operation == DW_OP_deref ? dereference() : arithmetic(operation);
  }

  bool dereference() {
    if (constant_ || address_->is_dereferenced) return false;
    address_->is_dereferenced = true;
    return true;
  }

  bool arithmetic(std::uint8_t operation) {
    if (operation == DW_OP_plus_uconst && !constant_) return add(static_cast<std::int64_t>(cursor_.uleb()));
    if (!constant_) return false;
    const std::int64_t value = *constant_;
    constant_.reset();
    if (operation == DW_OP_plus) return add(value);
    if (operation == DW_OP_minus) return add(wrapping_negate(value));
    return false;
  }

  bool add(std::int64_t value) {
    std::int64_t& term = address_->is_dereferenced ? address_->outer : address_->inner;
    term = wrapping_add(term, value);
    return true;
  }

  ByteCursor cursor_;
  std::optional<CfiAddress> address_;
  std::optional<std::int64_t> constant_;
};

bool next_is_constant(ByteCursor& cursor, std::int64_t wanted) {
  return read_constant(cursor.u8(), cursor) == wanted;
}

}  // namespace

std::optional<CfiAddress> simplify_cfi_expression(std::span<const std::byte> expression, bool cfa_is_pushed) {
  if (expression.size() > kMaxExpressionBytes) return std::nullopt;
  return Simplifier(expression, cfa_is_pushed).run();
}

std::optional<std::uint8_t> match_plt_expression(std::span<const std::byte> expression) {
  constexpr CfiAddress kStackPlus8{.base_register = 7, .inner = 8};
  constexpr CfiAddress kInstructionPointer{.base_register = 16};
  ByteCursor cursor(expression);
  if (read_register(cursor.u8(), cursor) != kStackPlus8) return std::nullopt;
  if (read_register(cursor.u8(), cursor) != kInstructionPointer) return std::nullopt;
  if (!next_is_constant(cursor, 15) || cursor.u8() != DW_OP_and) return std::nullopt;
  const auto threshold = read_constant(cursor.u8(), cursor);
  if (!threshold || *threshold < 0 || *threshold > 16 || cursor.u8() != DW_OP_ge) return std::nullopt;
  if (!next_is_constant(cursor, 3) || cursor.u8() != DW_OP_shl || cursor.u8() != DW_OP_plus)
    return std::nullopt;
  if (cursor.failed() || !cursor.at_end()) return std::nullopt;
  return static_cast<std::uint8_t>(*threshold);
}

}  // namespace ddprof
