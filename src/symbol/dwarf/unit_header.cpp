#include "symbol/dwarf/unit_header.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kLongFormat = 0xffffffff;
constexpr std::uint32_t kFirstReserved = 0xfffffff0;

void read_version_5(ByteCursor& cursor, UnitHeader& header) {
  header.type = DwarfUnitType{cursor.u8()};
  header.encoding.address_size = cursor.u8();
  header.abbreviations = cursor.word(header.encoding.offset_size);
  switch (header.type) {
    case DwarfUnitType::skeleton:
    case DwarfUnitType::split_compile:
      header.dwo_id = cursor.u64();
      break;
    case DwarfUnitType::type:
    case DwarfUnitType::split_type:
      cursor.skip(8U + header.encoding.offset_size);  // signature, offset of the type
      break;
    default:
      break;
  }
}

}  // namespace

std::uint64_t read_initial_length(ByteCursor& cursor, DwarfEncoding& encoding) {
  const std::uint32_t length = cursor.u32();
  encoding.offset_size = length == kLongFormat ? 8 : 4;
  if (length == kLongFormat) return cursor.u64();
  if (length >= kFirstReserved) cursor.fail();
  return length;
}

std::optional<std::uint64_t> unit_end(std::span<const std::byte> info, std::uint64_t offset) {
  ByteCursor cursor(info, offset);
  DwarfEncoding encoding;
  const std::uint64_t length = read_initial_length(cursor, encoding);
  if (cursor.failed() || length > cursor.left()) return std::nullopt;
  return cursor.offset() + length;
}

std::optional<UnitHeader> read_unit_header(std::span<const std::byte> info, std::uint64_t offset) {
  const auto end = unit_end(info, offset);
  if (!end) return std::nullopt;
  UnitHeader header;
  header.offset = offset;
  header.end = *end;
  ByteCursor cursor(info.first(*end), offset);
  static_cast<void>(read_initial_length(cursor, header.encoding));
  const std::uint16_t version = cursor.u16();
  if (version < 2 || version > 5) return std::nullopt;
  header.encoding.version = static_cast<std::uint8_t>(version);
  if (version == 5) {
    read_version_5(cursor, header);
  } else {
    header.abbreviations = cursor.word(header.encoding.offset_size);
    header.encoding.address_size = cursor.u8();
  }
  header.root = cursor.offset();
  const bool is_sound_address = header.encoding.address_size == 8 || header.encoding.address_size == 4;
  if (cursor.failed() || !is_sound_address) return std::nullopt;
  return header;
}

}  // namespace ddprof
