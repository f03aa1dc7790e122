#include <elf.h>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"

namespace ddprof {

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

}  // namespace ddprof
