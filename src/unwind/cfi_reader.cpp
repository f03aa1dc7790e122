#include "unwind/cfi_reader.hpp"

#include <string_view>

namespace ddprof {

namespace {

// DW_EH_PE_*: LSB core specification, "DWARF exception header encoding".
constexpr std::uint8_t kAbsolutePointer = 0x00;
constexpr std::uint8_t kAligned = 0x50;
constexpr std::uint8_t kFormatMask = 0x0f;
constexpr std::uint8_t kApplicationMask = 0x70;
constexpr std::uint8_t kIndirect = 0x80;

std::uint64_t address_of(const CfiSection& section, const ByteCursor& cursor) {
  return section.vaddr + static_cast<std::uint64_t>(cursor.position() - section.data.data());
}

template <typename T>
std::uint64_t read_signed(ByteCursor& cursor) {
  return static_cast<std::uint64_t>(std::int64_t{cursor.read<T>()});
}

std::uint8_t address_bytes(const CfiSection& section) {
  return static_cast<std::uint8_t>(word_bytes(section.architecture));
}

std::uint64_t read_pointer_format(const CfiSection& section, std::uint8_t encoding, ByteCursor& cursor) {
  switch (encoding & kFormatMask) {
    case 0x00:
    case 0x08:  // DW_EH_PE_signed: as wide as an address
      return cursor.word(address_bytes(section));
    case 0x04:
    case 0x0c:
      return cursor.read<std::uint64_t>();
    case 0x01:
      return cursor.uleb();
    case 0x02:
      return cursor.read<std::uint16_t>();
    case 0x03:
      return cursor.read<std::uint32_t>();
    case 0x09:
      return static_cast<std::uint64_t>(cursor.sleb());
    case 0x0a:
      return read_signed<std::int16_t>(cursor);
    case 0x0b:
      return read_signed<std::int32_t>(cursor);
    default:
      cursor.fail();
      return 0;
  }
}

// The augmentation string of GCC and LLVM: 'z' first, then one letter per item of the augmentation data.
void read_augmentation(std::string_view letters, ByteCursor& data, const CfiSection& section, Cie& cie) {
  for (const char letter : letters) {
    switch (letter) {
      case 'R':
        cie.pointer_encoding = data.u8();
        break;
      case 'L':
        data.u8();
        break;     // encoding of the exception table pointer, which FDEs let us skip
      case 'P': {  // the personality routine may well be indirect: only its size matters here
        const std::uint8_t encoding = data.u8();
        static_cast<void>(
            read_encoded_pointer(section, encoding & static_cast<std::uint8_t>(~kIndirect), data));
        break;
      }
      case 'S':
        cie.is_signal_frame = true;
        break;
      case 'B':
        break;  // aarch64: return addresses are signed with the B key
      default:
        return;  // the length of the data lets us skip what we do not know
    }
  }
}

bool is_cie_id(const CfiSection& section, bool is_64_bit, std::uint64_t id) {
  if (section.kind == CfiSection::Kind::eh_frame) return id == 0;
  return id == (is_64_bit ? ~std::uint64_t{0} : 0xffffffffU);
}

}  // namespace

std::uint64_t read_encoded_pointer(const CfiSection& section, std::uint8_t encoding, ByteCursor& cursor) {
  if ((encoding & kIndirect) != 0) {
    cursor.fail();
    return 0;
  }
  if (encoding == kAligned) {
    const std::uint8_t size = address_bytes(section);
    const std::uint64_t misaligned = address_of(section, cursor) % size;
    if (misaligned != 0) static_cast<void>(cursor.take(size - misaligned));
    return cursor.word(size);
  }
  const std::uint64_t here = address_of(section, cursor);
  const std::uint64_t value = read_pointer_format(section, encoding, cursor);
  // Sums of 32-bit addresses wrap there.
  const std::uint64_t mask = section.architecture == Architecture::i386 ? 0xffffffffU : ~std::uint64_t{0};
  switch (encoding & kApplicationMask) {
    case 0x00:
      return value & mask;
    case 0x10:
      return (value + here) & mask;
    case 0x20:
      return (value + section.text_base) & mask;
    case 0x30:
      return (value + section.data_base) & mask;
    default:
      cursor.fail();
      return 0;
  }
}

std::optional<CfiRecord> read_cfi_record(const CfiSection& section, std::uint64_t offset) {
  if (offset >= section.data.size()) return std::nullopt;
  ByteCursor cursor(section.data.subspan(offset));
  CfiRecord record{.offset = offset};
  std::uint64_t length = cursor.read<std::uint32_t>();
  const bool is_64_bit = length == 0xffffffffU;
  if (is_64_bit) length = cursor.read<std::uint64_t>();
  ByteCursor body(cursor.take(length));
  if (cursor.failed()) return std::nullopt;
  record.next_offset = static_cast<std::uint64_t>(cursor.position() - section.data.data());
  if (length == 0) return record;

  const auto id_offset = static_cast<std::uint64_t>(body.position() - section.data.data());
  // .eh_frame keeps a 32-bit id in 64-bit records too.
  const bool wide_id = is_64_bit && section.kind == CfiSection::Kind::debug_frame;
  const std::uint64_t id = wide_id ? body.read<std::uint64_t>() : body.read<std::uint32_t>();
  record.kind = is_cie_id(section, wide_id, id) ? CfiRecord::Kind::cie : CfiRecord::Kind::fde;
  // A pointer before the section wraps to an offset where no CIE will be found.
  record.cie_offset = section.kind == CfiSection::Kind::eh_frame ? id_offset - id : id;
  record.body = body.rest();
  return record;
}

std::optional<Cie> read_cie(const CfiSection& section, const CfiRecord& record) {
  ByteCursor cursor(record.body);
  Cie cie{.offset = record.offset};
  const std::uint8_t version = cursor.u8();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  const std::string_view augmentation = cursor.string();
  if (version == 4) {
    const std::uint8_t declared_bytes = cursor.u8();
    const std::uint8_t segment_selector_bytes = cursor.u8();
    if (declared_bytes != address_bytes(section) || segment_selector_bytes != 0) return std::nullopt;
  }
  cie.code_alignment = cursor.uleb();
  cie.data_alignment = cursor.sleb();
  cie.return_register = version == 1 ? cursor.u8() : cursor.uleb();
  cie.pointer_encoding = kAbsolutePointer;
  if (!augmentation.empty()) {
    if (augmentation.front() != 'z') return std::nullopt;  // an unknown form: even its size is unknown
    cie.has_augmentation_data = true;
    ByteCursor data(cursor.take(cursor.uleb()));
    read_augmentation(augmentation.substr(1), data, section, cie);
    if (data.failed()) return std::nullopt;
  }
  cie.instructions = cursor.rest();
  if (cursor.failed()) return std::nullopt;
  return cie;
}

std::optional<Fde> read_fde(const CfiSection& section, const CfiRecord& record, const Cie& cie) {
  ByteCursor cursor(record.body);
  Fde fde{.cie = &cie};
  fde.begin = read_encoded_pointer(section, cie.pointer_encoding, cursor);
  const std::uint64_t size = read_pointer_format(section, cie.pointer_encoding, cursor);
  fde.end = fde.begin + size;
  if (fde.end < fde.begin) return std::nullopt;
  if (cie.has_augmentation_data) static_cast<void>(cursor.take(cursor.uleb()));
  fde.instructions = cursor.rest();
  if (cursor.failed()) return std::nullopt;
  return fde;
}

}  // namespace ddprof
