#include "collect/bpf/bpf_call.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

namespace {

// The helpers that read memory are for programs under the GPL alone: context_program.cpp is offered under it.
constexpr const char* kLicense = "GPL";

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Result<UniqueFd> descriptor_of(bpf_cmd command, bpf_attr& attributes, std::string_view what) {
  const long fd = ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
  if (fd < 0) return errno_error(errno, fmt::format("bpf: {}", what));
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace

Result<UniqueFd> create_bpf_memory(std::size_t bytes) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = static_cast<std::uint32_t>(bytes);
  attributes.max_entries = 1;
  attributes.map_flags = BPF_F_MMAPABLE;
  return descriptor_of(BPF_MAP_CREATE, attributes, "make a map");
}

Result<UniqueFd> create_bpf_ring(std::size_t bytes) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_RINGBUF;
  attributes.max_entries = static_cast<std::uint32_t>(bytes);
  return descriptor_of(BPF_MAP_CREATE, attributes, "make a ring");
}

Result<UniqueFd> load_bpf_program(bpf_prog_type type, std::span<const bpf_insn> code, std::string_view name) {
  bpf_attr attributes{};
  attributes.prog_type = type;
  attributes.insns = address_of(code.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(code.size());
  attributes.license = address_of(kLicense);
  std::memcpy(attributes.prog_name, name.data(), std::min(name.size(), sizeof attributes.prog_name - 1));
  return descriptor_of(BPF_PROG_LOAD, attributes, fmt::format("load the program {}", name));
}

Result<void> run_bpf_program(int program) {
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<std::uint32_t>(program);
  if (::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attributes, sizeof attributes) != 0)
    return errno_error(errno, "bpf: run a program");
  return {};
}

}  // namespace ddprof
