#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "elf/elf_file.hpp"

namespace ddprof {

// A variable of which each thread has its own (STT_TLS), as the file that defines it describes it.
struct ThreadSymbol {
  // A place in the file's data that the loader fills with how to find the variable.
  struct Slot {
    enum class Kind : std::uint8_t {
      descriptor,  // TLSDESC: a function, then its argument
      index,       // DTPMOD64: the number of the module, then the offset in its block
      offset,      // TPOFF64: the distance from the thread pointer
    };
    Kind kind = Kind::descriptor;
    std::uint64_t vaddr = 0;
  };

  std::uint64_t offset = 0;            // in the block of its module
  std::int64_t executable_offset = 0;  // from the thread pointer, when the file is the program itself
  std::vector<Slot> slots;
};

// None: the file does not define it as a variable of threads. x86-64 alone.
std::optional<ThreadSymbol> find_thread_symbol(const ElfFile& elf, std::string_view name);

}  // namespace ddprof
