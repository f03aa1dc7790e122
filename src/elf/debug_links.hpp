#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/build_id.hpp"
#include "base/result.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// .gnu_debuglink: the name of the file that the debug information was moved to, and the checksum of all of
// its bytes. Foreign: the name may be anything.
struct DebugLink {
  std::string_view name;
  std::uint32_t checksum = 0;
};

// .gnu_debugaltlink, or .debug_sup of DWARF 5: the file that dwz moved common parts to.
struct SupplementaryLink {
  std::string_view path;  // as recorded: absolute, or relative to the file with the link
  BuildId build_id;
};

[[nodiscard]] std::optional<DebugLink> find_debug_link(const ElfFile& file);
[[nodiscard]] std::optional<SupplementaryLink> find_supplementary_link(const ElfFile& file);
// What such links call this file: its build id, or what its own .debug_sup says. Empty: nothing.
[[nodiscard]] BuildId supplementary_id(const ElfFile& file);

// What .gnu_debuglink calls the CRC of a file. Reads all of it.
[[nodiscard]] std::uint32_t debug_link_checksum(std::span<const std::byte> file);

// .gnu_debugdata: a small ELF file, packed with xz, whose .symtab has the functions that the stripped file
// does not name. The addresses are those of `file`. `not_found` when there is no such section, `exhausted`
// when it is larger than `max_bytes`, or was packed with a dictionary that is.
Result<std::vector<std::byte>> unpack_mini_debug_info(const ElfFile& file,
                                                      std::uint64_t max_bytes = ReadLimits().bytes());

}  // namespace ddprof
