#include "unwind/cfi_rule.hpp"

#include <dwarf.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "elf/byte_cursor.hpp"

namespace ddprof {

// The DWARF expressions that compilers put into CFI are few; this is what they can come to:
//   not dereferenced:  register + inner
//   dereferenced:      *(register + inner) + outer
struct CfiAddress {
  // Stands for the CFA, which register expressions find on the stack.
  static constexpr std::uint64_t kCfa = ~std::uint64_t{0};

  std::uint64_t base_register = 0;
  std::int64_t inner = 0;
  bool is_dereferenced = false;
  std::int64_t outer = 0;

  friend bool operator==(const CfiAddress&, const CfiAddress&) = default;
};

// Nothing when the expression is of any other form. `cfa_is_pushed`: it starts with the CFA on its stack.
[[nodiscard]] std::optional<CfiAddress> simplify_cfi_expression(std::span<const std::byte> expression,
                                                                bool cfa_is_pushed);

// The expression that linkers write for the .plt of x86-64: rsp + 8 + (((rip & 15) >= threshold) << 3), and
// for that of i386: esp + 4 + (((eip & 15) >= threshold) << 2).
// Returns the threshold: 11 for the old stub, 10 for others.
[[nodiscard]] std::optional<std::uint8_t> match_plt_expression(std::span<const std::byte> expression,
                                                               Architecture architecture);

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

std::optional<std::uint8_t> match_plt_expression(std::span<const std::byte> expression,
                                                 Architecture architecture) {
  const CfiRegisterNumbers registers = cfi_registers(architecture);
  const std::size_t word = word_bytes(architecture);
  const CfiAddress stack_plus_word{.base_register = registers.sp, .inner = static_cast<std::int64_t>(word)};
  const CfiAddress instruction_pointer{.base_register = registers.return_address};
  ByteCursor cursor(expression);
  if (read_register(cursor.u8(), cursor) != stack_plus_word) return std::nullopt;
  if (read_register(cursor.u8(), cursor) != instruction_pointer) return std::nullopt;
  if (!next_is_constant(cursor, 15) || cursor.u8() != DW_OP_and) return std::nullopt;
  const auto threshold = read_constant(cursor.u8(), cursor);
  if (!threshold || *threshold < 0 || *threshold > 16 || cursor.u8() != DW_OP_ge) return std::nullopt;
  if (!next_is_constant(cursor, word == 8 ? 3 : 2) || cursor.u8() != DW_OP_shl || cursor.u8() != DW_OP_plus)
    return std::nullopt;
  if (cursor.failed() || !cursor.at_end()) return std::nullopt;
  return static_cast<std::uint8_t>(*threshold);
}

namespace {

using Kind = CfiRegisterRule::Kind;

constexpr ddprof_unwind_rule kUnsupported{DDPROF_CFA_UNSUPPORTED, 0, 0, 0};

struct CfaPart {
  std::uint8_t cfa = 0;
  std::int32_t offset = 0;
};

std::optional<CfaPart> register_cfa(std::uint64_t number, std::int64_t offset,
                                    const CfiRegisterNumbers& registers) {
  if (!std::in_range<std::int32_t>(offset)) return std::nullopt;
  const auto offset32 = static_cast<std::int32_t>(offset);
  if (number == registers.sp) return CfaPart{DDPROF_CFA_SP, offset32};
  if (number == registers.fp) return CfaPart{DDPROF_CFA_FP, offset32};
  if (number >= Registers::kCount) return std::nullopt;
  return CfaPart{static_cast<std::uint8_t>(DDPROF_CFA_REGISTER + number), offset32};
}

std::optional<CfaPart> dereferenced_cfa(const CfiAddress& address, const CfiRegisterNumbers& registers) {
  if (!std::in_range<std::int16_t>(address.inner) || !std::in_range<std::int16_t>(address.outer))
    return std::nullopt;
  const auto low = static_cast<std::uint16_t>(address.inner);
  const auto high = static_cast<std::uint16_t>(address.outer);
  const auto packed = static_cast<std::int32_t>(std::uint32_t{low} | std::uint32_t{high} << 16);
  if (address.base_register == registers.sp) return CfaPart{DDPROF_CFA_DEREF_SP, packed};
  if (address.base_register == registers.fp) return CfaPart{DDPROF_CFA_DEREF_FP, packed};
  return std::nullopt;
}

std::optional<CfaPart> resolve_cfa(const CfaRule& cfa, Architecture architecture) {
  const CfiRegisterNumbers registers = cfi_registers(architecture);
  if (cfa.kind == CfaRule::Kind::register_plus)
    return register_cfa(cfa.register_number, cfa.offset, registers);
  if (cfa.kind == CfaRule::Kind::none) return std::nullopt;
  if (const auto address = simplify_cfi_expression(cfa.expression, false)) {
    if (address->is_dereferenced) return dereferenced_cfa(*address, registers);
    return register_cfa(address->base_register, address->inner, registers);
  }
  if (architecture == Architecture::aarch64) return std::nullopt;
  const auto threshold = match_plt_expression(cfa.expression, architecture);
  if (!threshold) return std::nullopt;
  return CfaPart{DDPROF_CFA_PLT, *threshold};
}

// Where a register was saved, with expressions turned into the plain forms that they stand for.
struct Slot {
  enum class Place : std::uint8_t { unchanged, undefined, at_cfa, at_fp, in_register, unsupported };
  Place place = Place::unchanged;
  std::int64_t value = 0;
};

Slot expression_slot(const CfiRegisterRule& rule, const CfaPart& cfa, const CfiRegisterNumbers& registers) {
  const auto address = simplify_cfi_expression(rule.expression, true);
  if (!address || address->is_dereferenced) return {Slot::Place::unsupported};
  if (address->base_register == CfiAddress::kCfa) return {Slot::Place::at_cfa, address->inner};
  // The same register that the CFA hangs on: a constant distance from the CFA.
  const bool hangs_on_sp = cfa.cfa == DDPROF_CFA_SP && address->base_register == registers.sp;
  const bool hangs_on_fp = cfa.cfa == DDPROF_CFA_FP && address->base_register == registers.fp;
  if ((hangs_on_sp || hangs_on_fp) && std::in_range<std::int32_t>(address->inner)) {
    return {Slot::Place::at_cfa, address->inner - cfa.offset};
  }
  if (address->base_register == registers.fp) return {Slot::Place::at_fp, address->inner};
  return {Slot::Place::unsupported};
}

Slot to_slot(const CfiRegisterRule& rule, const CfaPart& cfa, const CfiRegisterNumbers& registers) {
  switch (rule.kind) {
    case Kind::unspecified:
    case Kind::same:
      return {Slot::Place::unchanged};
    case Kind::undefined:
      return {Slot::Place::undefined};
    case Kind::at_cfa:
      return {Slot::Place::at_cfa, rule.value};
    case Kind::in_register:
      return {Slot::Place::in_register, rule.value};
    case Kind::at_expression:
      return expression_slot(rule, cfa, registers);
    case Kind::cfa_plus:
    case Kind::value_expression:
      return {Slot::Place::unsupported};
  }
  return {Slot::Place::unsupported};
}

// After a pop the compilers leave the rule of the popped register: its slot is below sp, where signal
// handlers may have written, and the register itself is already the caller's.
bool is_below_sp(const Slot& slot, const CfaPart& cfa) {
  return slot.place == Slot::Place::at_cfa && cfa.cfa == DDPROF_CFA_SP &&
         std::in_range<std::int32_t>(slot.value) && cfa.offset + slot.value < 0;
}

struct RulePart {
  std::uint8_t fp = DDPROF_FP_SAME;
  std::uint8_t ra = DDPROF_RA_AT_CFA_MINUS_8;
  std::int64_t offset = 0;
};

std::optional<RulePart> resolve_fp(const Slot& slot) {
  switch (slot.place) {
    case Slot::Place::unchanged:
    case Slot::Place::undefined:
      return RulePart{};  // an undefined one is not asked for: keep what we have
    case Slot::Place::at_cfa:
      return RulePart{DDPROF_FP_AT_CFA, 0, slot.value};
    case Slot::Place::at_fp:
      return RulePart{DDPROF_FP_AT_FP, 0, slot.value};
    case Slot::Place::in_register:
    case Slot::Place::unsupported:
      return std::nullopt;
  }
  return std::nullopt;
}

// A rule has one offset for the frame pointer and the return address: the two must share it.
std::optional<RulePart> add_saved_return_address(RulePart part, std::int64_t offset,
                                                 Architecture architecture) {
  const auto word = static_cast<std::int64_t>(word_bytes(architecture));
  if (offset == -word && architecture != Architecture::aarch64) return part;
  if (part.fp == DDPROF_FP_AT_CFA && part.offset + word == offset) {
    part.ra = DDPROF_RA_AFTER_FP;
  } else if (part.fp == DDPROF_FP_SAME) {
    part.ra = DDPROF_RA_AT_FP_OFFSET;
    part.offset = offset;
  } else if (offset != -word) {
    return std::nullopt;
  }
  return part;
}

std::optional<RulePart> add_return_address(RulePart part, const Slot& slot, const Cie& cie,
                                           Architecture architecture) {
  const bool in_link_register = architecture == Architecture::aarch64 && cie.return_register == 30;
  switch (slot.place) {
    case Slot::Place::at_cfa:
      return add_saved_return_address(part, slot.value, architecture);
    case Slot::Place::unchanged:
      if (!in_link_register) return std::nullopt;
      part.ra = DDPROF_RA_IN_LINK_REGISTER;
      return part;
    case Slot::Place::in_register:
      if (part.fp != DDPROF_FP_SAME || slot.value < 0 || slot.value >= std::int64_t{Registers::kCount})
        return std::nullopt;
      part.ra = DDPROF_RA_IN_REGISTER;
      part.offset = slot.value;
      return part;
    default:
      return std::nullopt;
  }
}

// A rule as the number that its bytes are. Built field by field it would be read back, to be interned, before
// the stores of its bytes are through, which stalls for longer than all the rest of a usual rule takes.
std::uint64_t pack(std::uint8_t cfa, std::uint8_t fp_ra, std::int16_t fp_offset, std::int32_t cfa_offset) {
  return std::uint64_t{cfa} | std::uint64_t{fp_ra} << 8 |
         std::uint64_t{static_cast<std::uint16_t>(fp_offset)} << 16 |
         std::uint64_t{static_cast<std::uint32_t>(cfa_offset)} << 32;
}

// Nearly every row of x86-64 code: CFA on rsp or rbp, the return address at CFA - 8, rbp untouched or saved.
// The same answer as the general way, packed; 0 when the row is of another form. It halves the time of a
// whole compilation.
std::uint64_t usual_x86_64_rule(const CfiState& state) {
  const CfaRule& cfa = state.cfa;
  if (cfa.kind != CfaRule::Kind::register_plus || !std::in_range<std::int32_t>(cfa.offset)) return 0;
  if (cfa.register_number != 7 && cfa.register_number != 6) return 0;
  if (state.return_address.kind != Kind::at_cfa || state.return_address.value != -8) return 0;
  const std::uint8_t where = cfa.register_number == 7 ? DDPROF_CFA_SP : DDPROF_CFA_FP;
  const auto offset = static_cast<std::int32_t>(cfa.offset);
  if (state.fp.kind == Kind::unspecified) return pack(where, DDPROF_FP_SAME, 0, offset);
  if (state.fp.kind != Kind::at_cfa || !std::in_range<std::int16_t>(state.fp.value)) return 0;
  const bool popped = where == DDPROF_CFA_SP && cfa.offset + state.fp.value < 0;
  if (popped) return pack(where, DDPROF_FP_SAME, 0, offset);
  return pack(where, DDPROF_FP_AT_CFA, static_cast<std::int16_t>(state.fp.value), offset);
}

}  // namespace

ddprof_unwind_rule to_unwind_rule(const CfiState& state, const Cie& cie, Architecture architecture) {
  if (cie.is_signal_frame) return {DDPROF_CFA_SIGNAL_FRAME, 0, 0, 0};
  if (state.return_address.kind == Kind::undefined) return {DDPROF_CFA_END, 0, 0, 0};
  if (!state.sp_is_cfa) return kUnsupported;
  if (architecture == Architecture::x86_64) {
    if (const auto usual = usual_x86_64_rule(state)) return std::bit_cast<ddprof_unwind_rule>(usual);
  }
  const CfiRegisterNumbers registers = cfi_registers(architecture);
  const auto cfa = resolve_cfa(state.cfa, architecture);
  if (!cfa) return kUnsupported;

  Slot fp_slot = to_slot(state.fp, *cfa, registers);
  if (is_below_sp(fp_slot, *cfa)) fp_slot = {Slot::Place::unchanged};
  Slot return_slot = to_slot(state.return_address, *cfa, registers);
  if (architecture == Architecture::aarch64 && is_below_sp(return_slot, *cfa))
    return_slot = {Slot::Place::unchanged};

  const auto fp = resolve_fp(fp_slot);
  if (!fp) return kUnsupported;
  const auto part = add_return_address(*fp, return_slot, cie, architecture);
  if (!part || !std::in_range<std::int16_t>(part->offset)) return kUnsupported;
  return {cfa->cfa, static_cast<std::uint8_t>(part->fp | part->ra << 4),
          static_cast<std::int16_t>(part->offset), cfa->offset};
}

}  // namespace ddprof
