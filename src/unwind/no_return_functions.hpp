#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "elf/elf_file.hpp"

namespace ddprof {

// Whether a function of this name never returns, as declared by the C and C++ libraries.
[[nodiscard]] bool is_no_return_name(std::string_view name);

// What a file says of functions that never return.
struct NoReturnFunctions {
  // A slot for an imported address that this very file can fill: the exported functions of a library.
  struct OwnImport {
    std::uint64_t slot = 0;
    std::uint64_t function = 0;
  };
  std::vector<std::uint64_t> addresses;  // of such functions, and of the slots of such imports; sorted
  std::vector<OwnImport> own_imports;    // by slot

  [[nodiscard]] static NoReturnFunctions find(const ElfFile& file);
  [[nodiscard]] std::size_t bytes() const {
    return addresses.size() * sizeof(std::uint64_t) + own_imports.size() * sizeof(OwnImport);
  }
  [[nodiscard]] bool contains(std::uint64_t address) const;
  [[nodiscard]] std::optional<std::uint64_t> function_of_slot(std::uint64_t slot) const;
};

}  // namespace ddprof
