#include "unwind/cfi_program.hpp"

#include <dwarf.h>

#include <span>

namespace ddprof {

using Kind = CfiRegisterRule::Kind;

void CfiProgram::start(const CfiSection& section, const Fde& fde) {
  section_ = &section;
  cie_ = fde.cie;
  cursor_ = ByteCursor(fde.instructions);
  state_ = fde.cie->initial;
  remembered_.clear();
  registers_ = cfi_registers(section.architecture);
  row_begin_ = location_ = fde.begin;
  end_ = fde.end;
  failed_ = false;
}

bool CfiProgram::next() {
  if (failed_ || location_ >= end_) return false;
  row_begin_ = location_;
  while (!cursor_.at_end()) {
    const Outcome outcome = execute_one();
    if (outcome == Outcome::bad || cursor_.failed()) {
      failed_ = true;
      location_ = row_begin_;
      return false;
    }
    if (outcome == Outcome::moved) return true;
  }
  location_ = end_;
  return true;
}

bool CfiProgram::run_cie_program(const CfiSection& section, Cie& cie) {
  cie.initial = {};
  // An empty function: an instruction that moves the location ends the program at once.
  start(section, Fde{.cie = &cie, .begin = 0, .end = 1, .instructions = cie.instructions});
  if (!next() || !cursor_.at_end()) return false;
  cie.initial = state_;
  return true;
}

CfiProgram::Outcome CfiProgram::move_to(std::uint64_t location) {
  if (location < location_) return Outcome::bad;
  if (location == location_) return Outcome::ok;
  location_ = location < end_ ? location : end_;
  return Outcome::moved;
}

CfiProgram::Outcome CfiProgram::advance(std::uint64_t delta) {
  if (delta == 0) return Outcome::ok;
  const std::uint64_t bytes = delta * cie_->code_alignment;
  return move_to(bytes < end_ - location_ ? location_ + bytes : end_);
}

std::int64_t CfiProgram::factored(std::uint64_t value) const {
  return static_cast<std::int64_t>(value *
                                   static_cast<std::uint64_t>(cie_->data_alignment));  // may wrap, not trap
}

std::span<const std::byte> CfiProgram::read_block() { return cursor_.take(cursor_.uleb()); }

void CfiProgram::set_rule(std::uint64_t register_number, const CfiRegisterRule& rule) {
  if (register_number == registers_.fp) state_.fp = rule;
  if (register_number == registers_.sp) state_.sp_is_cfa = rule.kind == Kind::cfa_plus && rule.value == 0;
  if (register_number == cie_->return_register) state_.return_address = rule;
}

CfiProgram::Outcome CfiProgram::restore(std::uint64_t register_number) {
  if (register_number == registers_.fp) state_.fp = cie_->initial.fp;
  if (register_number == registers_.sp) state_.sp_is_cfa = cie_->initial.sp_is_cfa;
  if (register_number == cie_->return_register) state_.return_address = cie_->initial.return_address;
  return Outcome::ok;
}

CfiProgram::Outcome CfiProgram::remember_state() {
  if (remembered_.size() >= kMaxRememberedStates) return Outcome::bad;
  remembered_.push_back(state_);
  return Outcome::ok;
}

CfiProgram::Outcome CfiProgram::restore_state() {
  if (remembered_.empty()) return Outcome::bad;
  state_ = remembered_.back();
  remembered_.pop_back();
  return Outcome::ok;
}

CfiProgram::Outcome CfiProgram::execute_one() {
  constexpr std::uint8_t kPrimaryMask = 0xc0;
  const std::uint8_t opcode = cursor_.u8();
  const std::uint64_t operand = opcode & static_cast<std::uint8_t>(~kPrimaryMask);
  switch (opcode & kPrimaryMask) {
    case DW_CFA_advance_loc:
      return advance(operand);
    case DW_CFA_offset:
      set_rule(operand, {Kind::at_cfa, factored(cursor_.uleb())});
      return Outcome::ok;
    case DW_CFA_restore:
      return restore(operand);
    default:
      return execute_extended(opcode);
  }
}

CfiProgram::Outcome CfiProgram::execute_extended(std::uint8_t opcode) {
  CfaRule& cfa = state_.cfa;
  const auto set_cfa = [&cfa](std::uint64_t register_number, std::int64_t offset) {
    cfa = {CfaRule::Kind::register_plus, register_number, offset};
    return Outcome::ok;
  };
  const auto set = [this](std::uint64_t register_number, const CfiRegisterRule& rule) {
    set_rule(register_number, rule);
    return Outcome::ok;
  };
  std::uint64_t number = 0;
  switch (opcode) {
    case DW_CFA_nop:
      return Outcome::ok;
    case DW_CFA_set_loc:
      return move_to(read_encoded_pointer(*section_, cie_->pointer_encoding, cursor_));
    case DW_CFA_advance_loc1:
      return advance(cursor_.u8());
    case DW_CFA_advance_loc2:
      return advance(cursor_.read<std::uint16_t>());
    case DW_CFA_advance_loc4:
      return advance(cursor_.read<std::uint32_t>());
    case DW_CFA_remember_state:
      return remember_state();
    case DW_CFA_restore_state:
      return restore_state();

    case DW_CFA_def_cfa:
      number = cursor_.uleb();
      return set_cfa(number, static_cast<std::int64_t>(cursor_.uleb()));
    case DW_CFA_def_cfa_sf:
      number = cursor_.uleb();
      return set_cfa(number, factored(static_cast<std::uint64_t>(cursor_.sleb())));
    // After an expression these two bring back the last register or offset, as libgcc does.
    case DW_CFA_def_cfa_register:
      return set_cfa(cursor_.uleb(), cfa.offset);
    case DW_CFA_def_cfa_offset:
      return set_cfa(cfa.register_number, static_cast<std::int64_t>(cursor_.uleb()));
    case DW_CFA_def_cfa_offset_sf:
      return set_cfa(cfa.register_number, factored(static_cast<std::uint64_t>(cursor_.sleb())));
    case DW_CFA_def_cfa_expression:
      cfa.kind = CfaRule::Kind::expression;
      cfa.expression = read_block();
      return Outcome::ok;

    case DW_CFA_offset_extended:
      number = cursor_.uleb();
      return set(number, {Kind::at_cfa, factored(cursor_.uleb())});
    case DW_CFA_offset_extended_sf:
      number = cursor_.uleb();
      return set(number, {Kind::at_cfa, factored(static_cast<std::uint64_t>(cursor_.sleb()))});
    case DW_CFA_val_offset:
      number = cursor_.uleb();
      return set(number, {Kind::cfa_plus, factored(cursor_.uleb())});
    case DW_CFA_val_offset_sf:
      number = cursor_.uleb();
      return set(number, {Kind::cfa_plus, factored(static_cast<std::uint64_t>(cursor_.sleb()))});
    case DW_CFA_restore_extended:
      return restore(cursor_.uleb());
    case DW_CFA_undefined:
      return set(cursor_.uleb(), {Kind::undefined});
    case DW_CFA_same_value:
      return set(cursor_.uleb(), {Kind::same});
    case DW_CFA_register:
      number = cursor_.uleb();
      return set(number, {Kind::in_register, static_cast<std::int64_t>(cursor_.uleb())});
    case DW_CFA_expression:
      number = cursor_.uleb();
      return set(number, {Kind::at_expression, 0, read_block()});
    case DW_CFA_val_expression:
      number = cursor_.uleb();
      return set(number, {Kind::value_expression, 0, read_block()});
    default:
      return execute_vendor(opcode);
  }
}

CfiProgram::Outcome CfiProgram::execute_vendor(std::uint8_t opcode) {
  constexpr std::uint8_t kNegateRaStateWithPc = 0x2c;  // AAELF64, DW_CFA_AARCH64_negate_ra_state_with_pc
  switch (opcode) {
    case DW_CFA_MIPS_advance_loc8:
      return advance(cursor_.read<std::uint64_t>());
    case DW_CFA_GNU_args_size:
      static_cast<void>(cursor_.uleb());
      return Outcome::ok;
    case DW_CFA_GNU_negative_offset_extended: {
      const std::uint64_t number = cursor_.uleb();
      set_rule(number, {Kind::at_cfa, factored(std::uint64_t{0} - cursor_.uleb())});
      return Outcome::ok;
    }
    // Whether the return address is signed: the executor strips signatures wherever they may be.
    case DW_CFA_AARCH64_negate_ra_state:
    case kNegateRaStateWithPc:
      return section_->architecture == Architecture::aarch64 ? Outcome::ok : Outcome::bad;
    default:
      return Outcome::bad;
  }
}

}  // namespace ddprof
