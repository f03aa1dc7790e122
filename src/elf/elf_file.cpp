#include "elf/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

// The two classes of ELF files: the same fields in other sizes, and partly in another order.
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Section = Elf64_Shdr;
};
struct Elf32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Section = Elf32_Shdr;
};

// From the bytes that both classes have in the same places.
Result<Architecture> architecture_of(std::span<const std::byte> image) {
  if (image.size() < SELFMAG || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0)
    return make_error(ErrorCode::corrupt, "parse ELF: the magic bytes are missing");
  const auto machine = load<std::uint16_t>(image, offsetof(Elf64_Ehdr, e_machine));
  if (!machine)
    return make_error(ErrorCode::corrupt, "parse ELF: {} bytes are too few for a header", image.size());
  if (image[EI_DATA] != std::byte{ELFDATA2LSB})
    return make_error(ErrorCode::unsupported, "parse ELF: not a little-endian file");
  const bool is_64_bit = image[EI_CLASS] == std::byte{ELFCLASS64};
  const bool is_32_bit = image[EI_CLASS] == std::byte{ELFCLASS32};
  if (is_64_bit && *machine == EM_X86_64) return Architecture::x86_64;
  if (is_64_bit && *machine == EM_AARCH64) return Architecture::aarch64;
  if (is_32_bit && *machine == EM_386) return Architecture::i386;
  return make_error(ErrorCode::unsupported, "parse ELF: machine {} with {} bits is not supported", *machine,
                    is_64_bit ? 64 : 32);
}

template <typename Header>
ElfSegment to_segment(const Header& header) {
  return {.type = header.p_type,
          .flags = header.p_flags,
          .offset = header.p_offset,
          .vaddr = header.p_vaddr,
          .filesz = header.p_filesz,
          .memsz = header.p_memsz,
          .alignment = header.p_align};
}

template <typename Header>
ElfSection to_section(const Header& header, std::span<const std::byte> image) {
  ElfSection section;
  section.type = header.sh_type;
  section.flags = header.sh_flags;
  section.vaddr = header.sh_addr;
  section.offset = header.sh_offset;
  section.size = header.sh_size;
  section.link = header.sh_link;
  section.entry_size = header.sh_entsize;
  section.alignment = header.sh_addralign;
  section.is_32_bit = sizeof header == sizeof(Elf32_Shdr);
  if (header.sh_type != SHT_NOBITS) section.data = slice_of(image, header.sh_offset, header.sh_size);
  return section;
}

}  // namespace

bool ElfSection::is_compressed() const { return (flags & SHF_COMPRESSED) != 0; }

Result<ElfFile> ElfFile::parse(std::span<const std::byte> image) {
  ElfFile file;
  file.image_ = image;
  file.architecture_ = TRY(architecture_of(image));
  TRY(file.is_32_bit() ? file.read_header<Elf32>() : file.read_header<Elf64>());
  return file;
}

template <typename Layout>
Result<void> ElfFile::read_header() {
  const auto header = load<typename Layout::Header>(image_, 0);
  if (!header)
    return make_error(ErrorCode::corrupt, "parse ELF: {} bytes are too few for a header", image_.size());
  type_ = ElfType{header->e_type};
  entry_ = header->e_entry;

  // Counts that do not fit the header's 16 bits are in section 0 (gABI, "ELF header").
  const auto extended =
      header->e_shoff != 0 ? load<typename Layout::Section>(image_, header->e_shoff) : std::nullopt;
  std::uint64_t segment_count = header->e_phnum;
  if (segment_count == PN_XNUM && extended) segment_count = extended->sh_info;
  if (header->e_phentsize == sizeof(typename Layout::Segment))
    TRY(read_segments<Layout>(header->e_phoff, segment_count));

  if (!extended || header->e_shentsize != section_header_bytes()) return {};
  section_table_offset_ = header->e_shoff;
  const std::uint64_t declared = header->e_shnum != 0 ? header->e_shnum : extended->sh_size;
  section_count_ =
      std::min<std::uint64_t>(declared, (image_.size() - section_table_offset_) / section_header_bytes());
  if (section_count_ > kMaxSections)
    return make_error(ErrorCode::exhausted, "parse ELF: {} sections are too many to read", section_count_);
  const std::uint32_t names = header->e_shstrndx == SHN_XINDEX ? extended->sh_link : header->e_shstrndx;
  if (const auto section = section_without_name(names)) section_names_ = section->data;
  return {};
}

template <typename Layout>
Result<void> ElfFile::read_segments(std::uint64_t offset, std::uint64_t count) {
  using Segment = typename Layout::Segment;
  if (offset > image_.size()) return {};
  count = std::min(count, (image_.size() - offset) / sizeof(Segment));
  if (count > kMaxSegments)
    return make_error(ErrorCode::exhausted, "parse ELF: {} segments are too many to read", count);
  segments_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    segments_.push_back(to_segment(*load<Segment>(image_, offset + i * sizeof(Segment))));
  }
  return {};
}

std::size_t ElfFile::section_header_bytes() const {
  return is_32_bit() ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
}

std::optional<ElfSection> ElfFile::section_without_name(std::size_t index) const {
  if (index >= section_count_) return std::nullopt;
  const std::uint64_t at = section_table_offset_ + index * section_header_bytes();
  return is_32_bit() ? to_section(*load<Elf32_Shdr>(image_, at), image_)
                     : to_section(*load<Elf64_Shdr>(image_, at), image_);
}

std::uint64_t ElfFile::name_offset(std::size_t index) const {
  return load<std::uint32_t>(image_, section_table_offset_ + index * section_header_bytes()).value_or(0);
}

std::optional<ElfSection> ElfFile::section(std::size_t index) const {
  auto section = section_without_name(index);
  if (!section) return std::nullopt;
  section->name = load_bounded_string(section_names_, name_offset(index), kMaxSectionNameBytes + 1);
  // One that goes on is none.
  if (section->name.size() > kMaxSectionNameBytes) section->name = {};
  return section;
}

std::optional<ElfSection> ElfFile::find_section(std::string_view name) const {
  for (std::size_t i = 1; i < section_count_; ++i) {
    // Most differ in their first bytes: their end is not looked for.
    const auto there = slice_of(section_names_, name_offset(i), name.size() + 1);
    if (there.empty() || there.back() != std::byte{0} ||
        std::memcmp(there.data(), name.data(), name.size()) != 0)
      continue;
    auto found = section_without_name(i);
    if (found) found->name = {reinterpret_cast<const char*>(there.data()), name.size()};
    return found;
  }
  return std::nullopt;
}

std::span<const std::byte> ElfFile::data_at(std::uint64_t vaddr) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || vaddr < segment.vaddr) continue;
    const std::uint64_t delta = vaddr - segment.vaddr;
    if (delta >= segment.filesz || segment.offset > image_.size()) continue;
    const std::uint64_t present = std::min(segment.filesz, image_.size() - segment.offset);
    if (delta >= present) continue;
    return image_.subspan(segment.offset + delta, present - delta);
  }
  return {};
}

std::optional<std::uint64_t> ElfFile::vaddr_of_offset(std::uint64_t file_offset) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || file_offset < segment.offset) continue;
    const std::uint64_t delta = file_offset - segment.offset;
    if (delta < segment.filesz) return segment.vaddr + delta;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ElfFile::offset_of_vaddr(std::uint64_t vaddr) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD || vaddr < segment.vaddr) continue;
    const std::uint64_t delta = vaddr - segment.vaddr;
    if (delta < segment.filesz) return segment.offset + delta;
  }
  return std::nullopt;
}

namespace {

// Notes are padded to 4 bytes, or to 8 where the segment or section is aligned so (.note.gnu.property).
std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  const std::uint64_t mask = (alignment == 8 ? 8 : 4) - 1;
  return (size + mask) & ~mask;
}

// Real files have a handful. Many sections can mean the same long list.
constexpr unsigned kMaxNotes = 4096;

BuildId build_id_in_notes(std::span<const std::byte> notes, std::uint64_t alignment, unsigned& notes_left) {
  while (const auto header = load<Elf64_Nhdr>(notes, 0)) {
    if (notes_left == 0) break;
    --notes_left;
    const std::uint64_t description_at =
        padded(sizeof(Elf64_Nhdr) + std::uint64_t{header->n_namesz}, alignment);
    if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == sizeof ELF_NOTE_GNU &&
        load_bounded_string(notes, sizeof(Elf64_Nhdr), sizeof ELF_NOTE_GNU) == ELF_NOTE_GNU) {
      return BuildId(slice_of(notes, description_at, header->n_descsz));
    }
    const std::uint64_t next = padded(description_at + header->n_descsz, alignment);
    if (next >= notes.size()) break;
    notes = notes.subspan(next);
  }
  return {};
}

}  // namespace

BuildId ElfFile::build_id() const {
  unsigned notes_left = kMaxNotes;
  // Sections first: in a separate debug file the program headers describe the bytes of the stripped file.
  for (std::size_t i = 1; i < section_count_; ++i) {
    const auto candidate = section_without_name(i);
    if (!candidate || candidate->type != SHT_NOTE) continue;
    if (auto id = build_id_in_notes(candidate->data, candidate->alignment, notes_left); !id.empty())
      return id;
  }
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_NOTE) continue;
    const auto notes = slice_of(image_, segment.offset, segment.filesz);
    if (auto id = build_id_in_notes(notes, segment.alignment, notes_left); !id.empty()) return id;
  }
  return {};
}

namespace {

template <typename Entry>
ElfSymbol to_symbol(const Entry& entry, std::span<const std::byte> names) {
  return {.name = load_bounded_string(names, entry.st_name, ElfFile::kMaxSymbolNameBytes),
          .value = entry.st_value,
          .size = entry.st_size,
          .type = static_cast<std::uint8_t>(ELF64_ST_TYPE(entry.st_info)),
          .binding = static_cast<std::uint8_t>(ELF64_ST_BIND(entry.st_info)),
          .section_index = entry.st_shndx};
}

template <typename Entry>
void visit_symbols(const ElfSymbolTable& table, const std::function<void(const ElfSymbol&)>& callback) {
  const std::size_t end = std::min<std::uint64_t>(table.size(), ElfFile::kMaxSymbols);
  for (std::size_t index = 1; index < end; ++index)
    callback(to_symbol(*load<Entry>(table.entries, index * sizeof(Entry)), table.names));
}

}  // namespace

std::optional<ElfSymbolTable> ElfFile::find_symbol_table(SymbolTableKind kind) const {
  const std::uint32_t wanted = kind == SymbolTableKind::symtab ? SHT_SYMTAB : SHT_DYNSYM;
  for (std::size_t i = 1; i < section_count_; ++i) {
    const auto table = section_without_name(i);
    if (!table || table->type != wanted || table->data.empty()) continue;
    const auto names = section_without_name(table->link);
    return ElfSymbolTable{table->data, names ? names->data : std::span<const std::byte>{},
                          is_32_bit() ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym)};
  }
  return std::nullopt;
}

bool ElfFile::for_each_symbol(SymbolTableKind kind,
                              const std::function<void(const ElfSymbol&)>& callback) const {
  const auto table = find_symbol_table(kind);
  if (!table) return false;
  is_32_bit() ? visit_symbols<Elf32_Sym>(*table, callback) : visit_symbols<Elf64_Sym>(*table, callback);
  return true;
}

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
                                         std::uint8_t encoding, bool is_32_bit) {
  switch (encoding & kFormatMask) {
    case 0x00:
      if (is_32_bit) return load_extended<std::uint32_t>(bytes, offset);
      return load<std::uint64_t>(bytes, offset);
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

std::optional<std::uint64_t> eh_frame_address(const ElfRange& header, bool is_32_bit) {
  constexpr std::uint64_t kPointerAt = 4;
  if (header.data.size() < kPointerAt || header.data[0] != std::byte{1}) return std::nullopt;
  const auto encoding = std::to_integer<std::uint8_t>(header.data[1]);
  if ((encoding & kIndirect) != 0) return std::nullopt;
  const auto value = load_format(header.data, kPointerAt, encoding, is_32_bit);
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
  const auto address = eh_frame_address(*header, is_32_bit());
  if (!address) return std::nullopt;
  const auto data = cut_at_terminator(data_at(*address));
  if (data.empty()) return std::nullopt;
  return ElfRange{*address, data};
}

}  // namespace ddprof
