#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/build_id.hpp"
#include "base/mapped_region.hpp"
#include "base/registers.hpp"
#include "base/result.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

enum class ElfType : std::uint16_t { none = 0, relocatable = 1, executable = 2, shared = 3, core = 4 };

// A program header.
struct ElfSegment {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t vaddr = 0;
  std::uint64_t filesz = 0;
  std::uint64_t memsz = 0;
  std::uint64_t alignment = 0;
};

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t vaddr = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // as the header says; `data` may be shorter (NOBITS, truncated file: empty)
  std::uint32_t link = 0;
  std::uint64_t entry_size = 0;
  std::uint64_t alignment = 0;
  std::span<const std::byte> data;
  bool is_32_bit = false;  // of such a file: a compression header has fields of other sizes

  [[nodiscard]] bool is_compressed() const;
};

// A range of the image together with the address that its first byte has.
struct ElfRange {
  std::uint64_t vaddr = 0;
  std::span<const std::byte> data;
};

enum class SymbolTableKind { symtab, dynsym };

// A symbol table and the texts that its names are in.
struct ElfSymbolTable {
  std::span<const std::byte> entries;
  std::span<const std::byte> names;
  std::size_t entry_bytes = 24;  // 16 in 32-bit files

  [[nodiscard]] std::size_t size() const { return entries.size() / entry_bytes; }
};

struct ElfSymbol {
  std::string_view name;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
  std::uint8_t type = 0;            // STT_*
  std::uint8_t binding = 0;         // STB_*
  std::uint16_t section_index = 0;  // SHN_*; 0 is an undefined symbol
};

// A view over the bytes of a little-endian ELF image, of 64 bits or of i386: a mapped file, or memory (the
// vdso, where addresses and offsets agree). Owns none of the bytes, which must outlive it. Never reads
// outside of them, whatever they say.
class ElfFile {
 public:
  // The kernel runs no program with more than 64 KiB of program headers (load_elf_phdrs() in
  // fs/binfmt_elf.c).
  static constexpr std::uint64_t kMaxSegments = 1170;
  // Linked files have some dozens. Objects with a section for each function have more; nothing runs them.
  static constexpr std::uint64_t kMaxSections = 65536;
  static constexpr std::size_t kMaxSectionNameBytes = 255;
  static constexpr std::size_t kMaxSymbolNameBytes = 4096;
  // Of one table: several times those of a browser with all its symbols.
  static constexpr std::uint64_t kMaxSymbols = std::uint64_t{1} << 23U;

  // Fails with `corrupt` when this is no ELF file, with `unsupported` when it is one of another kind, and
  // with `exhausted` when it has more segments or sections than any program.
  static Result<ElfFile> parse(std::span<const std::byte> image);

  [[nodiscard]] Architecture architecture() const { return architecture_; }
  [[nodiscard]] bool is_32_bit() const { return architecture_ == Architecture::i386; }
  [[nodiscard]] ElfType type() const { return type_; }
  [[nodiscard]] std::uint64_t entry() const { return entry_; }
  [[nodiscard]] std::span<const std::byte> image() const { return image_; }
  [[nodiscard]] std::span<const ElfSegment> segments() const { return segments_; }

  [[nodiscard]] std::size_t section_count() const { return section_count_; }
  [[nodiscard]] std::optional<ElfSection> section(std::size_t index) const;
  [[nodiscard]] std::optional<ElfSection> find_section(std::string_view name) const;
  // As find_section(), also under the name that old GNU tools gave to compressed ones: .zdebug_info for
  // .debug_info.
  [[nodiscard]] std::optional<ElfSection> find_debug_section(std::string_view name) const;
  // The bytes of a section, unpacked when it is compressed (zlib, Zstandard, .zdebug_*). They are memory of
  // the profiler, so that a file cannot have as much of it as it likes: past `max_bytes`, `exhausted`.
  [[nodiscard]] Result<std::vector<std::byte>> uncompressed(
      const ElfSection& section, std::uint64_t max_bytes = ReadLimits().bytes()) const;
  // The same of any size, on a disk. Fails with `corrupt` also when it was packed more tightly than debug
  // information ever is: a small file may not take a large part of the disk.
  [[nodiscard]] Result<MappedRegion> uncompressed(const ElfSection& section, Scratch& scratch) const;
  // What a compressed section claims to be when it is unpacked; 0: it is none, or is damaged.
  [[nodiscard]] static std::uint64_t uncompressed_bytes(const ElfSection& section);

  // Found through the program headers, so that stripped and in-memory images have them too. The .eh_frame
  // found through the header's pointer ends at its terminating record.
  [[nodiscard]] std::optional<ElfRange> find_eh_frame_hdr() const;
  [[nodiscard]] std::optional<ElfRange> find_eh_frame() const;

  // Empty when the file has none.
  [[nodiscard]] BuildId build_id() const;

  // The file bytes from this address to the end of its PT_LOAD segment; empty when it has none.
  [[nodiscard]] std::span<const std::byte> data_at(std::uint64_t vaddr) const;
  [[nodiscard]] std::optional<std::uint64_t> vaddr_of_offset(std::uint64_t file_offset) const;
  [[nodiscard]] std::optional<std::uint64_t> offset_of_vaddr(std::uint64_t vaddr) const;

  [[nodiscard]] std::optional<ElfSymbolTable> find_symbol_table(SymbolTableKind kind) const;
  // Calls back for every entry but the first, null one, up to kMaxSymbols. False when there is no such table.
  // Names past kMaxSymbolNameBytes are cut.
  bool for_each_symbol(SymbolTableKind kind, const std::function<void(const ElfSymbol&)>& callback) const;

 private:
  ElfFile() = default;

  [[nodiscard]] std::optional<ElfSection> section_without_name(std::size_t index) const;
  [[nodiscard]] std::uint64_t name_offset(std::size_t index) const;
  [[nodiscard]] std::size_t section_header_bytes() const;
  template <typename Layout>
  Result<void> read_header();
  template <typename Layout>
  Result<void> read_segments(std::uint64_t offset, std::uint64_t count);

  std::span<const std::byte> image_;
  Architecture architecture_ = Architecture::x86_64;
  ElfType type_ = ElfType::none;
  std::uint64_t entry_ = 0;
  std::vector<ElfSegment> segments_;
  std::uint64_t section_table_offset_ = 0;
  std::size_t section_count_ = 0;
  std::span<const std::byte> section_names_;
};

}  // namespace ddprof
