#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "elf/elf_file.hpp"

namespace ddprof {

// The functions in which programs and threads start. They are at the root of every stack, and local to their
// file: a stripped one has no symbols for them. What they do tells which they are. For x86-64 and glibc.
class StartFunctions {
 public:
  StartFunctions() = default;
  // `file_name` is without folders: only the C library is searched for functions that start threads.
  StartFunctions(const ElfFile& file, std::string_view file_name);

  // Of the function with this code in that file; empty when it is none of them.
  [[nodiscard]] std::string_view name_of(const ElfFile& file, std::uint64_t begin, std::uint64_t end) const;

 private:
  void find_exports(const ElfFile& file);

  std::uint64_t entry_ = 0;                    // 0: the program does not start as those of glibc do
  std::uint64_t main_ = 0;                     // what its start code passes on
  std::span<const std::byte> starts_program_;  // the code of __libc_start_main
  std::uint64_t starts_program_at_ = 0;
  bool creates_threads_ = false;  // the file has pthread_create
  bool has_clone_ = false;
};

}  // namespace ddprof
