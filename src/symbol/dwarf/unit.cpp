#include "symbol/dwarf/unit.hpp"

#include <algorithm>
#include <utility>

#include "symbol/dwarf/dwarf_file.hpp"

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

namespace {

std::optional<std::uint64_t> load_word(std::span<const std::byte> section, std::uint64_t base,
                                       std::uint64_t index, std::uint8_t size) {
  if (base > section.size() || index > section.size() / size) return std::nullopt;
  if (size == 8) return load<std::uint64_t>(section, base + index * size);
  const auto value = load<std::uint32_t>(section, base + index * size);
  return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

// Real names end long before. A file that points into the middle of a megabyte without an end shall not have
// all of it searched for each name.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 16U;

std::string_view load_text(std::span<const std::byte> section, std::uint64_t offset) {
  if (offset >= section.size()) return {};
  return load_string(section.subspan(offset, std::min(section.size() - offset, kMaxTextBytes)), 0);
}

}  // namespace

Unit::Unit(DwarfFile& file, const UnitHeader& header, std::shared_ptr<const AbbreviationTable> abbreviations,
           const UnitBases& bases)
    : file_(&file),
      address_file_(&file),
      header_(header),
      abbreviations_(std::move(abbreviations)),
      bases_(bases) {
  read_root();
  set_default_bases();
  if (root_.low_pc.exists()) base_address_ = address(root_.low_pc).value_or(0);
}

ByteCursor Unit::cursor_at(std::uint64_t offset) const {
  return ByteCursor(file_->section(DwarfSection::info).first(header_.end), offset);
}

void Unit::read_root() {
  root_.first_child = header_.end;
  ByteCursor cursor = cursor_at(header_.root);
  const Abbreviation* abbreviation = abbreviations_->find(cursor.uleb());
  if (abbreviation == nullptr) return;
  root_.tag = abbreviation->tag;
  for (const AttributeSpec& spec : abbreviations_->attributes(*abbreviation)) {
    const AttributeValue value = read_value(cursor, spec.form, encoding(), spec.implicit);
    if (cursor.failed()) return;
    take_root_attribute(spec.attribute, value);
  }
  if (abbreviation->has_children) root_.first_child = cursor.offset();
}

void Unit::take_root_attribute(DwarfAttribute attribute, const AttributeValue& value) {
  switch (attribute) {
    case DwarfAttribute::name:
      root_.name = value;
      break;
    case DwarfAttribute::comp_dir:
      root_.comp_dir = value;
      break;
    case DwarfAttribute::low_pc:
      root_.low_pc = value;
      break;
    case DwarfAttribute::high_pc:
      root_.high_pc = value;
      break;
    case DwarfAttribute::ranges:
      root_.ranges = value;
      break;
    case DwarfAttribute::language:
      root_.language = value.number;
      break;
    case DwarfAttribute::stmt_list:
      root_.stmt_list = value.number;
      break;
    case DwarfAttribute::dwo_name:
    case DwarfAttribute::gnu_dwo_name:
      root_.dwo_name = value;
      break;
    case DwarfAttribute::gnu_dwo_id:
      root_.dwo_id = value.number;
      break;
    case DwarfAttribute::str_offsets_base:
      str_offsets_base_ = value.number;
      break;
    case DwarfAttribute::addr_base:
    case DwarfAttribute::gnu_addr_base:
      addr_base_ = value.number;
      break;
    case DwarfAttribute::rnglists_base:
      rnglists_base_ = value.number;
      break;
    case DwarfAttribute::gnu_ranges_base:
      gnu_ranges_base_ = value.number;
      break;
    default:
      break;
  }
}

// A unit that does not say where its part of a table starts has it at the start of its file's, right after
// the header, which version 5 introduced.
void Unit::set_default_bases() {
  const bool is_version_5 = encoding().version >= 5;
  const bool is_long = encoding().offset_size == 8;
  if (header_.dwo_id != 0 || header_.type == DwarfUnitType::skeleton) root_.dwo_id = header_.dwo_id;
  if (!str_offsets_base_) str_offsets_base_ = bases_.str_offsets + (is_version_5 ? (is_long ? 16U : 8U) : 0U);
  if (!addr_base_) addr_base_ = is_version_5 ? (is_long ? 16U : 8U) : 0U;
  if (!rnglists_base_) rnglists_base_ = bases_.rnglists + (is_long ? 20U : 12U);
}

void Unit::attach_to(const Unit& skeleton) {
  address_file_ = skeleton.file_;
  addr_base_ = skeleton.addr_base_;
  old_ranges_base_ = skeleton.gnu_ranges_base_;
  base_address_ = skeleton.base_address_;
}

std::string_view Unit::string(const AttributeValue& value) const {
  switch (value.form) {
    case DwarfForm::string:
      return value.text.substr(0, kMaxTextBytes);
    case DwarfForm::strp:
      return load_text(file_->section(DwarfSection::str), value.number);
    case DwarfForm::line_strp:
      return load_text(file_->section(DwarfSection::line_str), value.number);
    case DwarfForm::gnu_strp_alt:
    case DwarfForm::strp_sup: {
      DwarfFile* other = file_->supplementary();
      return other != nullptr ? load_text(other->section(DwarfSection::str), value.number)
                              : std::string_view();
    }
    case DwarfForm::strx:
    case DwarfForm::strx1:
    case DwarfForm::strx2:
    case DwarfForm::strx3:
    case DwarfForm::strx4:
    case DwarfForm::gnu_str_index: {
      const auto offset = load_word(file_->section(DwarfSection::str_offsets), str_offsets_base_.value_or(0),
                                    value.number, encoding().offset_size);
      return offset ? load_text(file_->section(DwarfSection::str), *offset) : std::string_view();
    }
    default:
      return {};
  }
}

std::optional<std::uint64_t> Unit::indexed_address(std::uint64_t index) const {
  return load_word(address_file_->section(DwarfSection::addr), addr_base_.value_or(0), index,
                   encoding().address_size);
}

std::optional<std::uint64_t> Unit::address(const AttributeValue& value) const {
  if (value.form == DwarfForm::addr) return value.number;
  if (is_address_form(value.form)) return indexed_address(value.number);
  return std::nullopt;
}

std::optional<EntryReference> Unit::reference(const AttributeValue& value) const {
  switch (value.form) {
    case DwarfForm::ref1:
    case DwarfForm::ref2:
    case DwarfForm::ref4:
    case DwarfForm::ref8:
    case DwarfForm::ref_udata:
      if (value.number > header_.end - header_.offset) return std::nullopt;
      return EntryReference{file_, header_.offset + value.number};
    case DwarfForm::ref_addr:
      return EntryReference{file_, value.number};
    case DwarfForm::gnu_ref_alt:
    case DwarfForm::ref_sup4:
    case DwarfForm::ref_sup8:
      if (file_->supplementary() == nullptr) return std::nullopt;
      return EntryReference{file_->supplementary(), value.number};
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> Unit::range_list(const AttributeValue& value) const {
  if (encoding().version < 5) return old_ranges_base_ + value.number;
  if (value.form != DwarfForm::rnglistx) return value.number;
  const std::uint64_t base = rnglists_base_.value_or(0);
  const auto offset =
      load_word(file_->section(DwarfSection::rnglists), base, value.number, encoding().offset_size);
  return offset ? std::optional(base + *offset) : std::nullopt;
}

std::span<const std::byte> Unit::range_section() const {
  if (encoding().version >= 5) return file_->section(DwarfSection::rnglists);
  return address_file_->section(DwarfSection::ranges);
}

}  // namespace ddprof
