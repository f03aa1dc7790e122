#include "collect/bpf/bpf_code.hpp"

namespace ddprof {

void BpfCode::emit(int code, Register to, Register from, std::int16_t offset, std::int32_t number) {
  bpf_insn instruction{};
  instruction.code = static_cast<std::uint8_t>(code);
  instruction.dst_reg = to & 0xfU;
  instruction.src_reg = from & 0xfU;
  instruction.off = offset;
  instruction.imm = number;
  code_.push_back(instruction);
}

void BpfCode::emit_wide(Register to, Register kind, std::uint64_t number) {
  emit(BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, static_cast<std::int32_t>(number & 0xffffffff));
  emit(0, 0, 0, 0, static_cast<std::int32_t>(number >> 32U));
}

void BpfCode::jump(int condition, Register left, Register right, std::int32_t number, Label& to) {
  to.jumps_.push_back(code_.size());
  emit(BPF_JMP | condition, left, right, 0, number);
}

void BpfCode::place(Label& label) {
  for (std::size_t jump : label.jumps_) code_[jump].off = static_cast<std::int16_t>(code_.size() - jump - 1);
  label.jumps_.clear();
}

}  // namespace ddprof
