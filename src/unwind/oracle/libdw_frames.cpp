#include "unwind/oracle/libdw_frames.hpp"

#include <dwarf.h>

#include <cstdlib>
#include <vector>

#include "unwind/cfi_reader.hpp"

namespace ddprof {

namespace {

// The obvious evaluator of DWARF expressions, with every operation that CFI of this world uses.
class Evaluator {
 public:
  Evaluator(const MachineState& machine, Architecture architecture, std::optional<std::uint64_t> cfa)
      : machine_(machine), architecture_(architecture), cfa_(cfa) {}

  OraclePlace run(std::span<const Dwarf_Op> operations) {
    if (operations.size() == 1) {
      const Dwarf_Op& only = operations.front();
      if (only.atom >= DW_OP_reg0 && only.atom <= DW_OP_reg31)
        return {OraclePlace::Kind::in_register, std::uint64_t{only.atom} - DW_OP_reg0};
      if (only.atom == DW_OP_regx) return {OraclePlace::Kind::in_register, only.number};
    }
    for (const Dwarf_Op& operation : operations) {
      if (operation.atom == DW_OP_stack_value) return finish(OraclePlace::Kind::value);
      if (!step(operation)) return {};
    }
    return finish(OraclePlace::Kind::at_address);
  }

 private:
  OraclePlace finish(OraclePlace::Kind kind) {
    return stack_.empty() ? OraclePlace{} : OraclePlace{kind, stack_.back()};
  }

  bool push(std::uint64_t value) {
    stack_.push_back(value);
    return true;
  }
  bool push_register(std::uint64_t number, std::uint64_t offset) {
    return push(machine_.register_value(number, architecture_) + offset);
  }

  bool step(const Dwarf_Op& operation) {
    const unsigned atom = operation.atom;
    if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return push(atom - DW_OP_lit0);
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
      return push_register(atom - DW_OP_breg0, operation.number);
    switch (atom) {
      case DW_OP_bregx:
        return push_register(operation.number, operation.number2);
      case DW_OP_call_frame_cfa:
        return cfa_ && push(*cfa_);
      case DW_OP_const1u:
      case DW_OP_const1s:
      case DW_OP_const2u:
      case DW_OP_const2s:
      case DW_OP_const4u:
      case DW_OP_const4s:
      case DW_OP_const8u:
      case DW_OP_const8s:
      case DW_OP_constu:
      case DW_OP_consts:
        return push(operation.number);
      case DW_OP_nop:
        return true;
      default:
        return !stack_.empty() && compute(operation);
    }
  }

  bool compute(const Dwarf_Op& operation) {
    std::uint64_t& top = stack_.back();
    switch (operation.atom) {
      case DW_OP_deref:
        top = machine_.read(top);
        return true;
      case DW_OP_plus_uconst:
        top += operation.number;
        return true;
      case DW_OP_neg:
        top = 0 - top;
        return true;
      case DW_OP_dup:
        return push(std::uint64_t{top});
      case DW_OP_drop:
        stack_.pop_back();
        return true;
      default:
        break;
    }
    if (stack_.size() < 2) return false;
    const std::uint64_t right = top;
    stack_.pop_back();
    std::uint64_t& left = stack_.back();
    switch (operation.atom) {
      case DW_OP_plus:
        left += right;
        return true;
      case DW_OP_minus:
        left -= right;
        return true;
      case DW_OP_mul:
        left *= right;
        return true;
      case DW_OP_and:
        left &= right;
        return true;
      case DW_OP_or:
        left |= right;
        return true;
      case DW_OP_shl:
        left <<= right & 63;
        return true;
      case DW_OP_shr:
        left >>= right & 63;
        return true;
      case DW_OP_ge:
        left = static_cast<std::int64_t>(left) >= static_cast<std::int64_t>(right) ? 1 : 0;
        return true;
      default:
        return false;
    }
  }

  const MachineState& machine_;
  Architecture architecture_;
  std::optional<std::uint64_t> cfa_;
  std::vector<std::uint64_t> stack_;
};

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 31) * 0x9e3779b97f4a7c15U;
  return value ^ value >> 29;
}

struct FrameCloser {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }  // libdw: "to be freed by the caller"
};
using FramePointer = std::unique_ptr<Dwarf_Frame, FrameCloser>;

FramePointer find_frame(Dwarf_CFI* cfi, std::uint64_t address) {
  Dwarf_Frame* frame = nullptr;
  if (cfi == nullptr || dwarf_cfi_addrframe(cfi, address, &frame) != 0) return nullptr;
  return FramePointer(frame);
}

OraclePlace find_register(Dwarf_Frame* frame, std::uint64_t number, Evaluator evaluator) {
  Dwarf_Op buffer[3];
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, static_cast<int>(number), buffer, &operations, &count) != 0) return {};
  if (count == 0) return {operations == nullptr ? OraclePlace::Kind::same : OraclePlace::Kind::undefined, 0};
  return evaluator.run({operations, count});
}

std::optional<std::uint64_t> find_cfa(Dwarf_Frame* frame, Evaluator evaluator) {
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &operations, &count) != 0 || count == 0) return std::nullopt;
  const OraclePlace place = evaluator.run({operations, count});
  if (place.kind != OraclePlace::Kind::at_address && place.kind != OraclePlace::Kind::value)
    return std::nullopt;
  return place.number;
}

}  // namespace

std::uint64_t MachineState::read(std::uint64_t address) const { return mix(address) & 0x7fff'ffff'fff0U; }

std::uint64_t MachineState::register_value(std::uint64_t number, Architecture architecture) const {
  if (architecture != Architecture::aarch64 && number == cfi_registers(architecture).return_address)
    return registers.pc;
  return number < Registers::kCount ? registers.by_dwarf_number[number] : mix(number);
}

MachineState MachineState::make_up(std::uint64_t pc, Architecture architecture) {
  MachineState machine;
  for (std::size_t i = 0; i < Registers::kCount; ++i) {
    machine.registers.by_dwarf_number[i] = 0x1000'0000'0000U + (mix(i + 1) & 0xfff'ffff'fff0U);
  }
  const CfiRegisterNumbers numbers = cfi_registers(architecture);
  machine.registers.pc = pc;
  machine.registers.sp = machine.registers.by_dwarf_number[numbers.sp];
  machine.registers.fp = machine.registers.by_dwarf_number[numbers.fp];
  machine.registers.lr = machine.registers.by_dwarf_number[30];
  return machine;
}

LibdwFrames::LibdwFrames(std::span<const std::byte> image, Architecture architecture)
    : architecture_(architecture), image_(image.begin(), image.end()) {
  elf_version(EV_CURRENT);
  elf_ = elf_memory(reinterpret_cast<char*>(image_.data()), image_.size());
  if (elf_ == nullptr) return;
  eh_frame_ = dwarf_getcfi_elf(elf_);
  dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
  if (dwarf_ != nullptr) debug_frame_ = dwarf_getcfi(dwarf_);  // owned by dwarf_
}

LibdwFrames::~LibdwFrames() {
  if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
  if (dwarf_ != nullptr) dwarf_end(dwarf_);
  if (elf_ != nullptr) elf_end(elf_);
}

std::optional<OracleFrame> LibdwFrames::find(std::uint64_t elf_address, const MachineState& machine) const {
  FramePointer frame = find_frame(eh_frame_, elf_address);
  if (frame == nullptr) frame = find_frame(debug_frame_, elf_address);
  if (frame == nullptr) return std::nullopt;
  OracleFrame result;
  const int return_register = dwarf_frame_info(frame.get(), nullptr, nullptr, &result.is_signal_frame);
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  result.cfa_is_refused = dwarf_frame_cfa(frame.get(), &operations, &count) != 0;
  result.cfa = find_cfa(frame.get(), Evaluator(machine, architecture_, std::nullopt));
  const Evaluator evaluator(machine, architecture_, result.cfa);
  result.sp = find_register(frame.get(), cfi_registers(architecture_).sp, evaluator);
  result.fp = find_register(frame.get(), cfi_registers(architecture_).fp, evaluator);
  result.return_address = find_register(frame.get(), static_cast<std::uint64_t>(return_register), evaluator);
  for (std::size_t i = 0; i < kOtherKeptRegisters.size(); ++i)
    result.kept[i] = find_register(frame.get(), kOtherKeptRegisters[i], evaluator);
  return result;
}

}  // namespace ddprof
