#include "unwind/unwinder_code.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

namespace ddprof {

namespace {

using Code = std::span<const std::byte>;

bool starts_with(Code code, std::initializer_list<unsigned char> pattern) {
  return code.size() >= pattern.size() &&
         std::equal(pattern.begin(), pattern.end(), code.begin(),
                    [](unsigned char wanted, std::byte byte) { return std::byte{wanted} == byte; });
}

bool skip(Code& code, std::initializer_list<unsigned char> pattern) {
  if (!starts_with(code, pattern)) return false;
  code = code.subspan(pattern.size());
  return true;
}

bool is_return(Code code) {
  return starts_with(code, {0xc3}) || starts_with(code, {0xf3, 0xc3}) || starts_with(code, {0xc2});
}

// The register of `pop register`; consumes the instruction.
std::optional<unsigned> skip_pop(Code& code) {
  const bool is_extended = starts_with(code, {0x41}) && code.size() > 1;
  const Code opcode = is_extended ? code.subspan(1) : code;
  if (opcode.empty()) return std::nullopt;
  const auto byte = std::to_integer<unsigned>(opcode.front());
  if (byte < 0x58 || byte > 0x5f) return std::nullopt;
  code = opcode.subspan(1);
  return byte - 0x58 + (is_extended ? 8 : 0);
}

// [add $n,%rsp] pop... ret: what is left of the frame can be counted. Also the kernel's uprobe trampoline.
std::optional<ReturnHint> find_epilogue(Code code) {
  constexpr unsigned kRbp = 5;
  constexpr unsigned kRsp = 4;
  ReturnHint hint;
  if (starts_with(code, {0x48, 0x83, 0xc4}) && code.size() > 4) {  // add $imm8,%rsp
    hint.return_offset = static_cast<std::int8_t>(code[3]);
    if (hint.return_offset < 0) return std::nullopt;
    code = code.subspan(4);
  }
  while (const std::optional<unsigned> popped = skip_pop(code)) {
    if (*popped == kRsp) return std::nullopt;
    if (*popped == kRbp) hint.fp_offset = hint.return_offset;
    hint.return_offset += 8;
  }
  if (!is_return(code)) return std::nullopt;
  return hint;
}

bool is_import_stub(Code code) {
  if (starts_with(code, {0xff, 0x25}) || starts_with(code, {0xf2, 0xff, 0x25}))
    return true;                                                    // [bnd] jmp *slot
  if (code.size() < 6 || !starts_with(code, {0x68})) return false;  // push $index
  code = code.subspan(5);
  return starts_with(code, {0xe9}) || starts_with(code, {0xf2, 0xe9});  // [bnd] jmp to the first stub
}

std::optional<ReturnHint> find_hint_x86_64(Code code) {
  skip(code, {0xf3, 0x0f, 0x1e, 0xfa});                // endbr64
  if (starts_with(code, {0x55})) return ReturnHint{};  // push %rbp comes next
  if (starts_with(code, {0x48, 0x89, 0xe5}) || starts_with(code, {0x48, 0x8b, 0xec})) {
    return ReturnHint{8, 0, false};  // mov %rsp,%rbp comes next: rbp is saved already
  }
  if (is_import_stub(code)) return ReturnHint{};
  return find_epilogue(code);
}

// Lengths of `call *operand` (ff /2) without and with a REX prefix follow from its ModRM byte; the prefix
// does not matter here because only the end is compared.
bool is_indirect_call_of_length(Code code, std::size_t length) {
  if (code.size() < length) return false;
  const Code call = code.last(length);
  if (call[0] != std::byte{0xff}) return false;
  const auto modrm = std::to_integer<unsigned>(call[1]);
  if (((modrm >> 3) & 7) != 2) return false;
  const unsigned mod = modrm >> 6;
  const unsigned rm = modrm & 7;
  if (mod == 3) return length == 2;
  std::size_t expected = 2;
  unsigned base = rm;
  if (rm == 4) {  // a SIB byte follows
    ++expected;
    if (length < 3) return false;
    base = std::to_integer<unsigned>(call[2]) & 7;
  }
  if (mod == 1) expected += 1;
  if (mod == 2 || (mod == 0 && base == 5)) expected += 4;
  return length == expected;
}

bool is_after_call_x86_64(Code before) {
  if (before.size() >= 5 && before[before.size() - 5] == std::byte{0xe8}) return true;
  for (const std::size_t length : {2U, 3U, 4U, 6U, 7U}) {
    if (is_indirect_call_of_length(before, length)) return true;
  }
  return false;
}

std::optional<std::uint32_t> instruction_at(Code code, std::size_t index) {
  if (code.size() < (index + 1) * 4) return std::nullopt;
  std::uint32_t instruction = 0;
  std::memcpy(&instruction, code.data() + index * 4, 4);
  return instruction;
}

constexpr std::uint32_t kPaciasp = 0xd503233f;
constexpr std::uint32_t kBtiC = 0xd503245f;

std::optional<ReturnHint> find_hint_aarch64(Code code) {
  std::size_t index = 0;
  while (instruction_at(code, index) == kPaciasp || instruction_at(code, index) == kBtiC) ++index;
  const std::optional<std::uint32_t> instruction = instruction_at(code, index);
  if (!instruction) return std::nullopt;
  const bool is_return = *instruction == 0xd65f03c0 || *instruction == 0xd65f0bff;  // ret, retaa
  const bool saves_pair = (*instruction & 0xffc07fffU) == 0xa9807bfdU;              // stp x29,x30,[sp,#-n]!
  if (!is_return && !saves_pair) return std::nullopt;
  return ReturnHint{0, std::nullopt, true};
}

bool is_after_call_aarch64(Code before) {
  if (before.size() < 4) return false;
  const std::uint32_t instruction = *instruction_at(before.last(4), 0);
  return (instruction & 0xfc000000U) == 0x94000000U ||  // bl
         (instruction & 0xfffffc1fU) == 0xd63f0000U ||  // blr
         (instruction & 0xfefff800U) == 0xd63f0800U;    // blraa and its kin
}

}  // namespace

std::optional<ReturnHint> find_return_hint(Architecture architecture, Code code) {
  return architecture == Architecture::x86_64 ? find_hint_x86_64(code) : find_hint_aarch64(code);
}

bool is_after_call(Architecture architecture, Code code_before) {
  return architecture == Architecture::x86_64 ? is_after_call_x86_64(code_before)
                                              : is_after_call_aarch64(code_before);
}

bool is_signal_trampoline(Architecture architecture, Code code) {
  if (architecture == Architecture::x86_64) {  // mov $15,%rax (either width); syscall
    return starts_with(code, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}) ||
           starts_with(code, {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05});
  }
  return instruction_at(code, 0) == 0xd2801168 &&
         instruction_at(code, 1) == 0xd4000001;  // mov x8,#139; svc #0
}

bool is_after_system_call(Code before) {
  // syscall [test %rax,%rax [jl ..]]
  return (before.size() >= 2 && starts_with(before.last(2), {0x0f, 0x05})) ||
         (before.size() >= 5 && starts_with(before.last(5), {0x0f, 0x05, 0x48, 0x85, 0xc0})) ||
         (before.size() >= 7 && starts_with(before.last(7), {0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c}));
}

}  // namespace ddprof
