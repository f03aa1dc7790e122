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
std::optional<unsigned> skip_pop(Code& code, std::int64_t word) {
  const bool is_extended = word == 8 && starts_with(code, {0x41}) && code.size() > 1;
  const Code opcode = is_extended ? code.subspan(1) : code;
  if (opcode.empty()) return std::nullopt;
  const auto byte = std::to_integer<unsigned>(opcode.front());
  if (byte < 0x58 || byte > 0x5f) return std::nullopt;
  code = opcode.subspan(1);
  return byte - 0x58 + (is_extended ? 8 : 0);
}

// [add $n,%rsp] pop... ret: what is left of the frame can be counted. Also the kernel's uprobe trampoline.
std::optional<ReturnHint> find_epilogue(Code code, std::int64_t word) {
  constexpr unsigned kRbp = 5;
  constexpr unsigned kRsp = 4;
  ReturnHint hint;
  Code addition = code;
  const bool may_add = word == 4 || skip(addition, {0x48});
  if (may_add && starts_with(addition, {0x83, 0xc4}) && addition.size() > 3) {  // add $imm8,%rsp
    hint.return_offset = static_cast<std::int8_t>(addition[2]);
    if (hint.return_offset < 0) return std::nullopt;
    code = addition.subspan(3);
  }
  while (const std::optional<unsigned> popped = skip_pop(code, word)) {
    if (*popped == kRsp) return std::nullopt;
    if (*popped == kRbp) hint.fp_offset = hint.return_offset;
    hint.return_offset += word;
  }
  if (!is_return(code)) return std::nullopt;
  return hint;
}

bool is_import_stub_x86(Code code, std::int64_t word) {
  if (starts_with(code, {0xff, 0x25}) || starts_with(code, {0xf2, 0xff, 0x25}))
    return true;                                                    // [bnd] jmp *slot
  if (word == 4 && starts_with(code, {0xff, 0xa3})) return true;    // jmp *slot(%ebx)
  if (code.size() < 6 || !starts_with(code, {0x68})) return false;  // push $index
  code = code.subspan(5);
  return starts_with(code, {0xe9}) || starts_with(code, {0xf2, 0xe9});  // [bnd] jmp to the first stub
}

// How i386 code finds its data, often before its prologue: call thunk; add $distance,%reg. The thunk is
// mov (%esp),%reg; ret.
void skip_table_address(Code& code) {
  Code rest = code;
  if (starts_with(rest, {0xe8}) && rest.size() > 5) rest = rest.subspan(5);
  const bool is_add = starts_with(rest, {0x05}) && rest.size() > 5;  // to %eax
  const bool is_other_add =
      starts_with(rest, {0x81}) && rest.size() > 6 && (rest[1] & std::byte{0xf8}) == std::byte{0xc0};
  if (is_add || is_other_add) code = rest.subspan(is_add ? 5 : 6);
}
bool is_thunk(Code code) {
  return starts_with(code, {0x8b}) && code.size() > 3 && (code[1] & std::byte{0xc7}) == std::byte{0x04} &&
         code[2] == std::byte{0x24} && code[3] == std::byte{0xc3};
}

// Of both: i386 code has the same instructions, without a prefix for their size.
std::optional<ReturnHint> find_hint_x86(Code code, std::int64_t word) {
  skip(code, {0xf3, 0x0f, 0x1e, static_cast<unsigned char>(word == 8 ? 0xfa : 0xfb)});  // endbr64, endbr32
  if (word == 4) skip_table_address(code);
  if (starts_with(code, {0x55})) return ReturnHint{};  // push %rbp comes next
  Code move = code;
  const bool may_move = word == 4 || skip(move, {0x48});
  if (may_move && (starts_with(move, {0x89, 0xe5}) || starts_with(move, {0x8b, 0xec}))) {
    return ReturnHint{word, 0, false};  // mov %rsp,%rbp comes next: rbp is saved already
  }
  if (is_import_stub_x86(code, word) || (word == 4 && is_thunk(code))) return ReturnHint{};
  return find_epilogue(code, word);
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

bool is_after_call_x86(Code before) {
  if (before.size() >= 5 && before[before.size() - 5] == std::byte{0xe8}) return true;
  for (const std::size_t length : {2U, 3U, 4U, 6U, 7U}) {
    if (is_indirect_call_of_length(before, length)) return true;
  }
  return false;
}

// pop %eax; mov $119,%eax; int $0x80
bool is_sigreturn_i386(Code code) { return starts_with(code, {0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80}); }
// mov $173,%eax; int $0x80
bool is_rt_sigreturn_i386(Code code) { return starts_with(code, {0xb8, 173, 0, 0, 0, 0xcd, 0x80}); }

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
  if (architecture == Architecture::aarch64) return find_hint_aarch64(code);
  return find_hint_x86(code, static_cast<std::int64_t>(word_bytes(architecture)));
}

bool is_after_call(Architecture architecture, Code code_before) {
  return architecture == Architecture::aarch64 ? is_after_call_aarch64(code_before)
                                               : is_after_call_x86(code_before);
}

std::optional<std::uint64_t> direct_call_target(Architecture architecture, Code code_before,
                                                std::uint64_t address) {
  if (architecture != Architecture::aarch64) {  // e8, and how far behind it
    if (code_before.size() < 5 || code_before[code_before.size() - 5] != std::byte{0xe8}) return std::nullopt;
    std::int32_t distance = 0;
    std::memcpy(&distance, code_before.last(4).data(), sizeof distance);
    const std::uint64_t target = address + static_cast<std::uint64_t>(std::int64_t{distance});
    return architecture == Architecture::i386 ? static_cast<std::uint32_t>(target) : target;
  }
  if (code_before.size() < 4) return std::nullopt;
  const std::uint32_t instruction = *instruction_at(code_before.last(4), 0);
  if ((instruction & 0xfc000000U) != 0x94000000U) return std::nullopt;  // bl, and how many instructions on
  const auto words = static_cast<std::int32_t>(instruction << 6U) >> 6;
  return address - 4 + static_cast<std::uint64_t>(std::int64_t{words} * 4);
}

bool is_import_stub(Architecture architecture, Code code) {
  if (architecture == Architecture::aarch64) return false;
  const bool is_64_bit = architecture == Architecture::x86_64;
  skip(code, {0xf3, 0x0f, 0x1e, static_cast<unsigned char>(is_64_bit ? 0xfa : 0xfb)});  // endbr64, endbr32
  return is_import_stub_x86(code, is_64_bit ? 8 : 4);
}

bool is_signal_trampoline(Architecture architecture, Code code) {
  if (architecture == Architecture::x86_64) {  // mov $15,%rax (either width); syscall
    return starts_with(code, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}) ||
           starts_with(code, {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05});
  }
  if (architecture == Architecture::i386) return is_sigreturn_i386(code) || is_rt_sigreturn_i386(code);
  return instruction_at(code, 0) == 0xd2801168 &&
         instruction_at(code, 1) == 0xd4000001;  // mov x8,#139; svc #0
}

std::optional<std::uint64_t> find_signal_context_i386(Code code, std::size_t at) {
  const auto begins = [&](bool (*trampoline)(Code), std::size_t back) {
    return back <= at && at <= code.size() && trampoline(code.subspan(at - back));
  };
  // sigframe: return address, signal, sigcontext. The handler has popped the first, the trampoline pops the
  // second.
  if (begins(is_sigreturn_i386, 0)) return 4;
  for (const std::size_t back : {1U, 6U, 8U}) {
    if (begins(is_sigreturn_i386, back)) return 0;
  }
  // rt_sigframe: return address, signal, two pointers, siginfo, ucontext with its sigcontext behind 20 bytes.
  for (const std::size_t back : {0U, 5U, 7U}) {
    if (begins(is_rt_sigreturn_i386, back)) return 3 * 4 + 128 + 20;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> find_signal_context_i386(const Module& module, std::uint64_t pc) {
  constexpr std::size_t kTrampolineBytes = 8;
  const std::size_t before = module.code_before(pc, kTrampolineBytes).size();
  return find_signal_context_i386(module.code_at(pc - before), before);
}

bool is_after_system_call(Code before) {
  // syscall [test %rax,%rax [jl ..]]
  return (before.size() >= 2 && starts_with(before.last(2), {0x0f, 0x05})) ||
         (before.size() >= 5 && starts_with(before.last(5), {0x0f, 0x05, 0x48, 0x85, 0xc0})) ||
         (before.size() >= 7 && starts_with(before.last(7), {0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c}));
}

}  // namespace ddprof
