#include "symbol/dwarf/supplementary.hpp"

#include <optional>
#include <string_view>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

struct SupplementaryLink {
  std::string_view path;
  BuildId build_id;
};

std::optional<SupplementaryLink> read_gnu_link(std::span<const std::byte> section) {
  ByteCursor cursor(section);
  const std::string_view path = cursor.string();
  if (path.empty()) return std::nullopt;
  return SupplementaryLink{path, BuildId(section.subspan(cursor.offset()))};
}

// DWARF 5, section 7.3.6.
std::optional<SupplementaryLink> read_standard_link(std::span<const std::byte> section) {
  ByteCursor cursor(section);
  const std::uint16_t version = cursor.u16();
  const bool is_itself_supplementary = cursor.u8() != 0;
  const std::string_view path = cursor.string();
  const std::uint64_t size = cursor.uleb();
  if (version != 5 || is_itself_supplementary || path.empty() || size > cursor.left()) return std::nullopt;
  return SupplementaryLink{path, BuildId(section.subspan(cursor.offset(), size))};
}

}  // namespace

const ElfFile* find_supplementary(const ElfFile& file, DebugFileSource& others) {
  std::optional<SupplementaryLink> link;
  if (const auto section = file.find_section(".gnu_debugaltlink")) {
    link = read_gnu_link(section->data);
  } else if (const auto standard = file.find_section(".debug_sup")) {
    link = read_standard_link(standard->data);
  }
  return link ? others.supplementary(link->path, link->build_id) : nullptr;
}

}  // namespace ddprof
