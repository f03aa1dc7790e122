#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

class ElfFile;

// A named range of code. `name` lives as long as the image of its file.
struct Symbol {
  std::string_view name;    // empty: there is none
  std::uint64_t start = 0;  // ELF virtual address
  std::uint64_t size = 0;
  bool is_stub = false;  // a jump through the linkage table to `name`

  // As the linker knows it (see demangle.hpp); "puts@plt" of a stub.
  [[nodiscard]] std::string linker_name() const { return std::string(name) + (is_stub ? "@plt" : ""); }
};

// The function symbol that covers each of these addresses, which are sorted. Padding, stripped code and data
// get no name rather than a neighbour's.
//
// A large program has a million symbols and 100 MB of names, and a period asks for some hundred addresses: so
// the entries are read once, in their order, names only of those that cover an address, and nothing is kept.
// Fails with `exhausted` when the table is larger than the limit.
[[nodiscard]] Result<std::vector<Symbol>> find_symbols(const ElfFile& file,
                                                       std::span<const std::uint64_t> addresses,
                                                       const ReadLimits& limits = {});

}  // namespace ddprof
