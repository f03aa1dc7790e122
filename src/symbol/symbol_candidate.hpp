#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

class ElfFile;

// A symbol that may name code, before aliases and overlaps are settled. `name` points into the ELF image.
struct SymbolCandidate {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  bool is_local = false;
  bool is_plt = false;  // a jump through the linkage table to `name`
};

// The code symbols of .symtab and .dynsym. Sizes that the file leaves open (hand-written assembly) reach to
// the next symbol or the end of the section. Fails with `exhausted` when they are too many: the next symbol
// of some would be missing.
Result<std::vector<SymbolCandidate>> code_symbols(const ElfFile& file, const ReadLimits& limits);

// The entries of the procedure linkage table (x86-64): each is a jump through a slot that a relocation names.
std::vector<SymbolCandidate> plt_symbols(const ElfFile& file, const ReadLimits& limits);

}  // namespace ddprof
