#include "elf/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "elf/load.hpp"

namespace ddprof {

namespace {

Result<Architecture> architecture_of(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return make_error(ErrorCode::unsupported, "parse ELF: not a 64-bit file");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return make_error(ErrorCode::unsupported, "parse ELF: not a little-endian file");
  }
  switch (header.e_machine) {
    case EM_X86_64:
      return Architecture::x86_64;
    case EM_AARCH64:
      return Architecture::aarch64;
    default:
      return make_error(ErrorCode::unsupported, "parse ELF: machine {} is not supported", header.e_machine);
  }
}

ElfSegment to_segment(const Elf64_Phdr& header) {
  return {.type = header.p_type,
          .flags = header.p_flags,
          .offset = header.p_offset,
          .vaddr = header.p_vaddr,
          .filesz = header.p_filesz,
          .memsz = header.p_memsz,
          .alignment = header.p_align};
}

}  // namespace

bool ElfSection::is_compressed() const { return (flags & SHF_COMPRESSED) != 0; }

Result<ElfFile> ElfFile::parse(std::span<const std::byte> image) {
  ElfFile file;
  file.image_ = image;
  TRY(file.read_header());
  return file;
}

Result<void> ElfFile::read_header() {
  const auto header = load<Elf64_Ehdr>(image_, 0);
  if (image_.size() < SELFMAG || std::memcmp(image_.data(), ELFMAG, SELFMAG) != 0) {
    return make_error(ErrorCode::corrupt, "parse ELF: the magic bytes are missing");
  }
  if (!header)
    return make_error(ErrorCode::corrupt, "parse ELF: {} bytes are too few for a header", image_.size());
  architecture_ = TRY(architecture_of(*header));
  type_ = ElfType{header->e_type};
  entry_ = header->e_entry;

  // Counts that do not fit the header's 16 bits are in section 0 (gABI, "ELF header").
  const auto extended = header->e_shoff != 0 ? load<Elf64_Shdr>(image_, header->e_shoff) : std::nullopt;
  std::uint64_t segment_count = header->e_phnum;
  if (segment_count == PN_XNUM && extended) segment_count = extended->sh_info;
  if (header->e_phentsize == sizeof(Elf64_Phdr)) TRY(read_segments(header->e_phoff, segment_count));

  if (!extended || header->e_shentsize != sizeof(Elf64_Shdr)) return {};
  section_table_offset_ = header->e_shoff;
  const std::uint64_t declared = header->e_shnum != 0 ? header->e_shnum : extended->sh_size;
  section_count_ =
      std::min<std::uint64_t>(declared, (image_.size() - section_table_offset_) / sizeof(Elf64_Shdr));
  if (section_count_ > kMaxSections)
    return make_error(ErrorCode::exhausted, "parse ELF: {} sections are too many to read", section_count_);
  const std::uint32_t names = header->e_shstrndx == SHN_XINDEX ? extended->sh_link : header->e_shstrndx;
  if (const auto section = section_without_name(names)) section_names_ = section->data;
  return {};
}

Result<void> ElfFile::read_segments(std::uint64_t offset, std::uint64_t count) {
  if (offset > image_.size()) return {};
  count = std::min(count, (image_.size() - offset) / sizeof(Elf64_Phdr));
  if (count > kMaxSegments)
    return make_error(ErrorCode::exhausted, "parse ELF: {} segments are too many to read", count);
  segments_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    segments_.push_back(to_segment(*load<Elf64_Phdr>(image_, offset + i * sizeof(Elf64_Phdr))));
  }
  return {};
}

std::optional<ElfSection> ElfFile::section_without_name(std::size_t index) const {
  if (index >= section_count_) return std::nullopt;
  const auto header = *load<Elf64_Shdr>(image_, section_table_offset_ + index * sizeof(Elf64_Shdr));
  ElfSection section;
  section.type = header.sh_type;
  section.flags = header.sh_flags;
  section.vaddr = header.sh_addr;
  section.offset = header.sh_offset;
  section.size = header.sh_size;
  section.link = header.sh_link;
  section.entry_size = header.sh_entsize;
  section.alignment = header.sh_addralign;
  if (header.sh_type != SHT_NOBITS) section.data = slice_of(image_, header.sh_offset, header.sh_size);
  return section;
}

std::uint64_t ElfFile::name_offset(std::size_t index) const {
  return load<Elf64_Word>(image_, section_table_offset_ + index * sizeof(Elf64_Shdr)).value_or(0);
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

}  // namespace ddprof
