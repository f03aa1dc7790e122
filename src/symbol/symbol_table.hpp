#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

class ElfFile;

// A named range of code. `name` is as the linker knows it (see demangle.hpp) and lives as long as its table
// and the image of its file.
struct Symbol {
  std::string_view name;
  std::uint64_t start = 0;  // ELF virtual address
  std::uint64_t size = 0;
};

// The function symbols of one ELF file, compact and sorted. An address is named only by a symbol that covers
// it: padding, stripped code and data get no name rather than a neighbour's. Names stay in the file, whose
// image must outlive this: those of a browser take more than 100 MB.
class SymbolTable {
 public:
  SymbolTable() = default;

  // Fails with `exhausted` when the table is larger than the limit.
  static Result<SymbolTable> build(const ElfFile& file, const ReadLimits& limits = {});

  [[nodiscard]] std::optional<Symbol> find(std::uint64_t elf_address) const;
  [[nodiscard]] std::size_t size() const { return pieces_.size(); }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return names_.capacity() + pieces_.capacity() * sizeof(Piece);
  }

 private:
  // Code from `start` on that belongs to one symbol. Symbols that overlap are cut into disjoint pieces when
  // the table is built, so that a search is one bisection whatever the file says.
  struct Piece {
    std::uint64_t start = 0;
    std::uint32_t size = 0;
    std::uint32_t symbol_offset = 0;  // how far behind the symbol's start the piece begins
    std::uint32_t symbol_size : 31 = 0;
    std::uint32_t is_name_in_file : 1 = 0;
    std::uint32_t name = 0;  // offset into file_names_, or into names_, zero-terminated
  };

  std::vector<Piece> pieces_;
  std::span<const std::byte> file_names_;
  std::string names_;  // that no string table has: "puts@plt"
};

}  // namespace ddprof
