#include "unwind/no_return_functions.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ddprof {

namespace {

constexpr std::array<std::string_view, 42> kNames{
    "_Exit",
    "_Unwind_Resume",
    "_ZN10__cxxabiv111__terminateEPFvvE",
    "_ZN10__cxxabiv112__unexpectedEPFvvE",
    "_ZSt10unexpectedv",
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_ZSt21__glibcxx_assert_failPKciS0_S0_",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
    "xabort",
    "xalloc_die",
};
static_assert(std::is_sorted(kNames.begin(), kNames.end()));

// std::__throw_bad_alloc and its kin: _ZSt17__throw_bad_allocv, _ZSt20__throw_length_errorPKc
bool is_standard_throw(std::string_view name) {
  constexpr std::string_view kStandard = "_ZSt";
  constexpr std::string_view kThrow = "__throw_";
  if (!name.starts_with(kStandard)) return false;
  name.remove_prefix(kStandard.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && name.substr(digits).starts_with(kThrow);
}

std::string_view text_at(std::span<const std::byte> texts, std::uint64_t offset) {
  if (offset >= texts.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(texts.data() + offset);
  return {begin,
          ::strnlen(begin, std::min<std::size_t>(texts.size() - offset, ElfFile::kMaxSymbolNameBytes))};
}

void add_imports(const ElfSection& relocations, const ElfSymbolTable& symbols, NoReturnFunctions& found) {
  for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= relocations.data.size(); at += sizeof(Elf64_Rela)) {
    Elf64_Rela relocation;
    std::memcpy(&relocation, relocations.data.data() + at, sizeof relocation);
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
    if (index >= symbols.entries.size() / sizeof(Elf64_Sym)) continue;
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols.entries.data() + index * sizeof symbol, sizeof symbol);
    if (is_no_return_name(text_at(symbols.names, symbol.st_name)))
      found.addresses.push_back(relocation.r_offset);
    else if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      found.own_imports.push_back({relocation.r_offset, symbol.st_value});
  }
}

}  // namespace

bool is_no_return_name(std::string_view name) {
  return std::binary_search(kNames.begin(), kNames.end(), name) || is_standard_throw(name);
}

NoReturnFunctions NoReturnFunctions::find(const ElfFile& file) {
  NoReturnFunctions found;
  for (const SymbolTableKind kind : {SymbolTableKind::symtab, SymbolTableKind::dynsym}) {
    file.for_each_symbol(kind, [&](const ElfSymbol& symbol) {
      if (symbol.section_index != SHN_UNDEF && symbol.type == STT_FUNC && is_no_return_name(symbol.name))
        found.addresses.push_back(symbol.value);
    });
  }
  if (const auto symbols = file.find_symbol_table(SymbolTableKind::dynsym)) {
    for (const std::string_view name : {".rela.plt", ".rela.dyn"}) {
      if (const auto relocations = file.find_section(name)) add_imports(*relocations, *symbols, found);
    }
  }
  std::sort(found.addresses.begin(), found.addresses.end());
  std::sort(found.own_imports.begin(), found.own_imports.end(),
            [](const OwnImport& one, const OwnImport& other) { return one.slot < other.slot; });
  return found;
}

bool NoReturnFunctions::contains(std::uint64_t address) const {
  return std::binary_search(addresses.begin(), addresses.end(), address);
}

std::optional<std::uint64_t> NoReturnFunctions::function_of_slot(std::uint64_t slot) const {
  const auto found =
      std::lower_bound(own_imports.begin(), own_imports.end(), slot,
                       [](const OwnImport& import, std::uint64_t wanted) { return import.slot < wanted; });
  if (found == own_imports.end() || found->slot != slot) return std::nullopt;
  return found->function;
}

}  // namespace ddprof
