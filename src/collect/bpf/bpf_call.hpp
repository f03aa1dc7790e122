#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// Writes the instructions of a BPF program one after the other. Jumps go forward only, to labels: a program
// ends by construction.
class BpfCode {
 public:
  using Register = std::uint8_t;  // BPF_REG_0 to BPF_REG_10

  class Label {
   private:
    friend class BpfCode;
    std::vector<std::size_t> jumps_;
  };

  void set(Register to, std::int32_t number) { emit(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number); }
  void copy(Register to, Register from) { emit(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void add(Register to, std::int32_t number) { emit(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number); }
  void add_register(Register to, Register from) { emit(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
  void multiply(Register to, std::int32_t number) { emit(BPF_ALU64 | BPF_MUL | BPF_K, to, 0, 0, number); }
  void mask(Register to, std::int32_t number) { emit(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, number); }
  void combine(Register to, Register from) { emit(BPF_ALU64 | BPF_OR | BPF_X, to, from, 0, 0); }
  void shift_left(Register to, std::int32_t bits) { emit(BPF_ALU64 | BPF_LSH | BPF_K, to, 0, 0, bits); }
  void shift_right(Register to, std::int32_t bits) { emit(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, bits); }

  // `width`: BPF_B, BPF_H, BPF_W or BPF_DW.
  void load(int width, Register to, Register base, std::int16_t offset) {
    emit(static_cast<std::uint8_t>(BPF_LDX | width | BPF_MEM), to, base, offset, 0);
  }
  void store(int width, Register base, std::int16_t offset, Register from) {
    emit(static_cast<std::uint8_t>(BPF_STX | width | BPF_MEM), base, from, offset, 0);
  }
  void store_number(int width, Register base, std::int16_t offset, std::int32_t number) {
    emit(static_cast<std::uint8_t>(BPF_ST | width | BPF_MEM), base, 0, offset, number);
  }
  void add_to_memory(Register base, std::int16_t offset, Register from) {
    emit(BPF_STX | BPF_DW | BPF_ATOMIC, base, from, offset, BPF_ADD);
  }

  void set_wide(Register to, std::uint64_t number) { emit_wide(to, 0, number); }
  void set_map(Register to, int map) { emit_wide(to, BPF_PSEUDO_MAP_FD, static_cast<std::uint32_t>(map)); }
  // The address of the only value of a map.
  void set_map_value(Register to, int map) {
    emit_wide(to, BPF_PSEUDO_MAP_VALUE, static_cast<std::uint32_t>(map));
  }

  void jump_if_equal(Register left, std::int32_t right, Label& to) {
    jump(BPF_JEQ | BPF_K, left, 0, right, to);
  }
  void jump_if_other(Register left, std::int32_t right, Label& to) {
    jump(BPF_JNE | BPF_K, left, 0, right, to);
  }
  void jump_if_above(Register left, std::int32_t right, Label& to) {
    jump(BPF_JGT | BPF_K, left, 0, right, to);
  }
  void jump_if_same(Register left, Register right, Label& to) { jump(BPF_JEQ | BPF_X, left, right, 0, to); }
  void jump_if_not_above(Register left, std::int32_t right, Label& to) {
    jump(BPF_JLE | BPF_K, left, 0, right, to);
  }
  void jump_always(Label& to) { jump(BPF_JA, 0, 0, 0, to); }
  void place(Label& label);

  void call(bpf_func_id helper) { emit(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  void end() { emit(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

  [[nodiscard]] std::span<const bpf_insn> instructions() const { return code_; }

 private:
  void emit(int code, Register to, Register from, std::int16_t offset, std::int32_t number);
  void emit_wide(Register to, Register kind, std::uint64_t number);
  void jump(int condition, Register left, Register right, std::int32_t number, Label& to);

  std::vector<bpf_insn> code_;
};

// bpf(2), as far as it is needed here. Descriptors are close-on-exec.

// One value of `bytes`, which can be mapped into memory.
Result<UniqueFd> create_bpf_memory(std::size_t bytes);
// `bytes`: a power of two, and whole pages.
Result<UniqueFd> create_bpf_ring(std::size_t bytes);
Result<UniqueFd> load_bpf_program(bpf_prog_type type, std::span<const bpf_insn> code, std::string_view name);
// Runs a program of type raw tracepoint once, in the context of the caller.
Result<void> run_bpf_program(int program);

}  // namespace ddprof
