#include <elf.h>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"

namespace ddprof {

namespace {

// Pointer encodings of .eh_frame_hdr (LSB core, "DWARF exception header encoding").
constexpr std::uint8_t kFormatMask = 0x0f;
constexpr std::uint8_t kApplicationMask = 0x70;
constexpr std::uint8_t kIndirect = 0x80;

template <typename T>
std::optional<std::uint64_t> load_extended(std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto value = load<T>(bytes, offset);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(*value));  // unsigned types do not change
}

std::optional<std::uint64_t> load_format(std::span<const std::byte> bytes, std::uint64_t offset,
                                         std::uint8_t encoding) {
  switch (encoding & kFormatMask) {
    case 0x00:
    case 0x04:
    case 0x0c:
      return load<std::uint64_t>(bytes, offset);
    case 0x02:
      return load_extended<std::uint16_t>(bytes, offset);
    case 0x03:
      return load_extended<std::uint32_t>(bytes, offset);
    case 0x0a:
      return load_extended<std::int16_t>(bytes, offset);
    case 0x0b:
      return load_extended<std::int32_t>(bytes, offset);
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> eh_frame_address(const ElfRange& header) {
  constexpr std::uint64_t kPointerAt = 4;
  if (header.data.size() < kPointerAt || header.data[0] != std::byte{1}) return std::nullopt;
  const auto encoding = std::to_integer<std::uint8_t>(header.data[1]);
  if ((encoding & kIndirect) != 0) return std::nullopt;
  const auto value = load_format(header.data, kPointerAt, encoding);
  if (!value) return std::nullopt;
  switch (encoding & kApplicationMask) {
    case 0x00:
      return *value;
    case 0x10:
      return *value + header.vaddr + kPointerAt;
    case 0x30:
      return *value + header.vaddr;
    default:
      return std::nullopt;
  }
}

// The records from the start to the one that ends the section (length 0), or to the first that cannot be.
std::span<const std::byte> cut_at_terminator(std::span<const std::byte> data) {
  constexpr std::uint32_t kLengthIs64Bit = 0xffffffff;
  std::uint64_t at = 0;
  while (const auto length32 = load<std::uint32_t>(data, at)) {
    if (*length32 == 0) return data.first(at + sizeof *length32);
    std::uint64_t body = at + sizeof *length32;
    std::uint64_t length = *length32;
    if (*length32 == kLengthIs64Bit) {
      length = load<std::uint64_t>(data, body).value_or(~std::uint64_t{0});
      body += sizeof length;
    }
    if (body > data.size() || length > data.size() - body) break;
    at = body + length;
  }
  return data.first(at);
}

}  // namespace

std::optional<ElfRange> ElfFile::find_eh_frame_hdr() const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_GNU_EH_FRAME) continue;
    const auto data = slice_of(image_, segment.offset, segment.filesz);
    if (!data.empty()) return ElfRange{segment.vaddr, data};
  }
  return std::nullopt;
}

std::optional<ElfRange> ElfFile::find_eh_frame() const {
  if (const auto section = find_section(".eh_frame")) {
    // In a separate debug file the section is there without bytes, and the program headers point at other
    // bytes.
    if (section->data.empty()) return std::nullopt;
    return ElfRange{section->vaddr, section->data};
  }
  const auto header = find_eh_frame_hdr();
  if (!header) return std::nullopt;
  const auto address = eh_frame_address(*header);
  if (!address) return std::nullopt;
  const auto data = cut_at_terminator(data_at(*address));
  if (data.empty()) return std::nullopt;
  return ElfRange{*address, data};
}

}  // namespace ddprof
