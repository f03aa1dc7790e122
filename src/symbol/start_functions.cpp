#include "symbol/start_functions.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

// Numbers of system calls.
constexpr std::uint32_t kExit = 60;
constexpr std::uint32_t kSetRobustList = 273;
constexpr std::uint32_t kClone3 = 435;

// No start function is longer.
constexpr std::size_t kMaxCodeBytes = 4096;

using Code = std::span<const std::byte>;

Code code_at(const ElfFile& file, std::uint64_t address, std::uint64_t size) {
  const Code code = file.data_at(address);
  return code.first(std::min<std::uint64_t>({code.size(), size, kMaxCodeBytes}));
}

template <std::size_t N>
bool begins_with(Code code, const std::array<unsigned char, N>& bytes) {
  return code.size() >= N && std::equal(bytes.begin(), bytes.end(), code.begin(),
                                        [](auto left, auto right) { return std::byte{left} == right; });
}

bool begins_with_call(Code code) {
  return begins_with<1>(code, {0xe8}) || begins_with<2>(code, {0x67, 0xe8}) ||
         begins_with<2>(code, {0xff, 0x15});
}

// Whether the number is loaded into a register (mov $number, %r32: b8 to bf) and a system call follows soon.
bool makes_system_call(Code code, std::uint32_t number) {
  constexpr std::size_t kSoon = 24;
  for (std::size_t at = 0; at + 5 <= code.size(); ++at) {
    if ((code[at] & std::byte{0xf8}) != std::byte{0xb8} || load<std::uint32_t>(code, at + 1) != number)
      continue;
    const Code rest = code.subspan(at + 5);
    for (std::size_t next = 0; next < std::min(rest.size(), kSoon); ++next) {
      if (begins_with<2>(rest.subspan(next), {0x0f, 0x05})) return true;
    }
  }
  return false;
}

// Whether some `call target` (e8) is in the code, which lies at `address`.
bool has_call_to(Code code, std::uint64_t address, std::uint64_t target) {
  for (std::size_t at = 0; at + 5 <= code.size(); ++at) {
    if (code[at] != std::byte{0xe8}) continue;
    const auto offset = *load<std::int32_t>(code, at + 1);
    if (address + at + 5 + static_cast<std::uint64_t>(std::int64_t{offset}) == target) return true;
  }
  return false;
}

// The code at the entry of a program clears the frame pointer, and loads the address of main as the first
// argument just before it calls __libc_start_main (sysdeps/x86_64/start.S of glibc).
std::optional<std::uint64_t> main_of(const ElfFile& file) {
  constexpr std::size_t kStartBytes = 64;
  Code code = code_at(file, file.entry(), kStartBytes);
  std::uint64_t address = file.entry();
  if (begins_with<4>(code, {0xf3, 0x0f, 0x1e, 0xfa})) {  // endbr64
    code = code.subspan(4);
    address += 4;
  }
  if (!begins_with<2>(code, {0x31, 0xed})) return std::nullopt;  // xor %ebp, %ebp
  constexpr std::size_t kLoadBytes = 7;
  for (std::size_t at = 0; at + kLoadBytes <= code.size(); ++at) {
    const Code rest = code.subspan(at);
    if (!begins_with_call(rest.subspan(kLoadBytes))) continue;
    const auto number = static_cast<std::uint64_t>(std::int64_t{*load<std::int32_t>(rest, 3)});
    if (begins_with<3>(rest, {0x48, 0x8d, 0x3d})) return address + at + kLoadBytes + number;  // lea
    if (begins_with<3>(rest, {0x48, 0xc7, 0xc7})) return number;                              // mov
  }
  return std::nullopt;
}

}  // namespace

StartFunctions::StartFunctions(const ElfFile& file, std::string_view file_name) {
  if (file.architecture() != Architecture::x86_64) return;
  if (const auto main = main_of(file)) {
    entry_ = file.entry();
    main_ = *main;
  }
  if (file_name.starts_with("libc.so") || file_name.starts_with("libc-2") ||
      file_name.starts_with("libpthread"))
    find_exports(file);
}

void StartFunctions::find_exports(const ElfFile& file) {
  file.for_each_symbol(SymbolTableKind::dynsym, [&](const ElfSymbol& symbol) {
    if (symbol.section_index == SHN_UNDEF) return;
    creates_threads_ |= symbol.name == "pthread_create";
    has_clone_ |= symbol.name == "clone";
    if (symbol.name != "__libc_start_main") return;
    starts_program_at_ = symbol.value;
    starts_program_ = code_at(file, symbol.value, symbol.size);
  });
}

std::string_view StartFunctions::name_of(const ElfFile& file, std::uint64_t begin, std::uint64_t end) const {
  if (begin == 0 || end <= begin) return {};
  if (begin == main_) return "main";
  if (begin == entry_) return "_start";
  if (!creates_threads_ && !has_clone_ && starts_program_.empty()) return {};
  const Code code = code_at(file, begin, end - begin);
  if (!makes_system_call(code, kExit)) return {};
  // A thread begins behind the system call that creates it: unwind information has that as a part of its own.
  constexpr std::uint64_t kBefore = 32;
  if (has_clone_ && makes_system_call(code_at(file, begin - std::min(begin, kBefore), kBefore), kClone3))
    return "clone3";
  if (creates_threads_ && makes_system_call(code, kSetRobustList)) return "start_thread";
  if (has_call_to(starts_program_, starts_program_at_, begin)) return "__libc_start_call_main";
  return {};
}

}  // namespace ddprof
