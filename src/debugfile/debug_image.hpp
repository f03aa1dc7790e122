#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/foreign_file.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// An ELF file that was opened for what it tells about another one.
struct DebugImage {
  std::string root;  // through which it was reached: "/proc/123/root", or empty
  std::string path;  // below that
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::optional<std::uint32_t> owner;  // its only writer; none: others could write it too
  MappedRegion region;
  ElfFile file;

  [[nodiscard]] std::string place() const { return root + path; }
  [[nodiscard]] bool is_same_file(const DebugImage& other) const {
    return device == other.device && inode == other.inode;
  }
};

Result<DebugImage> open_debug_image(PatientOpener& opener, const FileRequest& request);

// Names and lines for people who debug; stripped files have neither.
[[nodiscard]] bool has_debug_info(const ElfFile& file);
[[nodiscard]] bool has_symbol_table(const ElfFile& file);

// "/usr/bin" of "/usr/bin/cat"; empty for what lies in "/".
[[nodiscard]] std::string folder_of(const std::string& path);
[[nodiscard]] std::string base_name_of(const std::string& path);

}  // namespace ddprof
