#include "elf/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <libelf.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "elf/byte_cursor.hpp"

namespace ddprof {
namespace {

MappedRegion map(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return MappedRegion::map_file(fd.get()).value_or({});
}

// libelf's view of the same bytes: the truth of these tests.
class Libelf {
 public:
  explicit Libelf(std::span<const std::byte> image) {
    elf_version(EV_CURRENT);
    elf_ = elf_memory(const_cast<char*>(reinterpret_cast<const char*>(image.data())), image.size());
  }
  ~Libelf() { elf_end(elf_); }
  Libelf(const Libelf&) = delete;
  Libelf& operator=(const Libelf&) = delete;
  [[nodiscard]] Elf* get() const { return elf_; }

 private:
  Elf* elf_ = nullptr;
};

// Of i386, with stubs, compressed debug information and a build id, as gcc and ld made it.
const std::string kLibrary386 = DDPROF_SOURCE_DIR "/tests/fuzz/elf_file_fuzz/i386_library";

// This program, the C library that it runs with, and one of i386.
std::vector<std::string> real_files() {
  std::vector<std::string> paths = {"/proc/self/exe", kLibrary386};
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6",
                           "/lib64/libc.so.6", "/usr/lib32/libc.so.6"}) {
    if (::access(path, R_OK) == 0) paths.emplace_back(path);
  }
  return paths;
}

std::span<const std::byte> vdso_image() {
  const auto* vdso = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  if (vdso == nullptr) return {};
  Elf64_Ehdr header;
  std::memcpy(&header, vdso, sizeof header);
  return {vdso, header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize};
}

std::vector<std::byte> without_sections(std::span<const std::byte> image) {
  std::vector<std::byte> stripped(image.begin(), image.end());
  const bool is_32_bit = stripped[EI_CLASS] == std::byte{ELFCLASS32};
  std::memset(stripped.data() + (is_32_bit ? offsetof(Elf32_Ehdr, e_shoff) : offsetof(Elf64_Ehdr, e_shoff)),
              0, is_32_bit ? sizeof(Elf32_Off) : sizeof(Elf64_Off));
  return stripped;
}

TEST(ElfFile, HasTheSectionsThatLibelfSees) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const auto file = ElfFile::parse(region.bytes());
    ASSERT_TRUE(file.ok()) << path;
    const Libelf truth(region.bytes());
    std::size_t names = 0;
    ASSERT_EQ(elf_getshdrstrndx(truth.get(), &names), 0);
    std::size_t seen = 1;
    for (Elf_Scn* section = elf_nextscn(truth.get(), nullptr); section != nullptr;
         section = elf_nextscn(truth.get(), section)) {
      GElf_Shdr header;
      ASSERT_NE(gelf_getshdr(section, &header), nullptr);
      const auto ours = file->section(seen++);
      ASSERT_TRUE(ours.has_value());
      EXPECT_EQ(ours->name, elf_strptr(truth.get(), names, header.sh_name));
      EXPECT_EQ(ours->type, header.sh_type);
      EXPECT_EQ(ours->flags, header.sh_flags);
      EXPECT_EQ(ours->vaddr, header.sh_addr);
      EXPECT_EQ(ours->size, header.sh_size);
      EXPECT_EQ(ours->data.size(), header.sh_type == SHT_NOBITS ? 0 : header.sh_size);
    }
    EXPECT_EQ(file->section_count(), seen);
    EXPECT_FALSE(file->section(seen).has_value());
    EXPECT_FALSE(file->find_section(".no_such_section").has_value());
  }
}

TEST(ElfFile, HasTheSegmentsThatLibelfSees) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const auto file = ElfFile::parse(region.bytes());
    const Libelf truth(region.bytes());
    std::size_t count = 0;
    ASSERT_EQ(elf_getphdrnum(truth.get(), &count), 0);
    ASSERT_EQ(file->segments().size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      ASSERT_NE(gelf_getphdr(truth.get(), static_cast<int>(i), &header), nullptr);
      EXPECT_EQ(file->segments()[i].type, header.p_type);
      EXPECT_EQ(file->segments()[i].vaddr, header.p_vaddr);
      EXPECT_EQ(file->segments()[i].memsz, header.p_memsz);
    }
  }
}

TEST(ElfFile, ListsTheSymbolsThatLibelfSees) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const auto file = ElfFile::parse(region.bytes());
    const Libelf truth(region.bytes());
    for (Elf_Scn* section = elf_nextscn(truth.get(), nullptr); section != nullptr;
         section = elf_nextscn(truth.get(), section)) {
      GElf_Shdr header;
      gelf_getshdr(section, &header);
      if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      int index = 1;
      const auto kind = header.sh_type == SHT_SYMTAB ? SymbolTableKind::symtab : SymbolTableKind::dynsym;
      EXPECT_TRUE(file->for_each_symbol(kind, [&](const ElfSymbol& ours) {
        GElf_Sym symbol;
        ASSERT_NE(gelf_getsym(data, index++, &symbol), nullptr);
        EXPECT_EQ(ours.name, elf_strptr(truth.get(), header.sh_link, symbol.st_name));
        EXPECT_EQ(ours.value, symbol.st_value);
        EXPECT_EQ(ours.size, symbol.st_size);
        EXPECT_EQ(ours.type, GELF_ST_TYPE(symbol.st_info));
        EXPECT_EQ(ours.binding, GELF_ST_BIND(symbol.st_info));
        EXPECT_EQ(ours.section_index, symbol.st_shndx);
      }));
      EXPECT_EQ(static_cast<std::uint64_t>(index), header.sh_size / header.sh_entsize) << path;
    }
  }
}

TEST(ElfFile, TurnsOffsetsAndAddressesIntoEachOther) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const auto file = ElfFile::parse(region.bytes());
    const auto text = file->find_section(".text");
    ASSERT_TRUE(text.has_value()) << path;
    EXPECT_EQ(file->vaddr_of_offset(text->offset), text->vaddr);
    EXPECT_EQ(file->offset_of_vaddr(text->vaddr + 5), text->offset + 5);
    EXPECT_EQ(file->data_at(text->vaddr).data(), text->data.data());
    EXPECT_FALSE(file->offset_of_vaddr(~std::uint64_t{0}).has_value());
    EXPECT_FALSE(file->vaddr_of_offset(~std::uint64_t{0}).has_value());
    EXPECT_TRUE(file->data_at(~std::uint64_t{0}).empty());
  }
}

TEST(ElfFile, FindsTheSameEhFrameThroughProgramHeadersAsThroughSections) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const std::vector<std::byte> stripped = without_sections(region.bytes());
    const auto with_sections = ElfFile::parse(region.bytes())->find_eh_frame();
    const auto without = ElfFile::parse(stripped)->find_eh_frame();
    ASSERT_TRUE(with_sections && without) << path;
    EXPECT_EQ(with_sections->vaddr, without->vaddr);
    EXPECT_EQ(with_sections->data.size(), without->data.size());
  }
}

TEST(ElfFile, ReadsTheBuildIdWithAndWithoutSections) {
  for (const std::string& path : real_files()) {
    const MappedRegion region = map(path);
    const auto note = ElfFile::parse(region.bytes())->find_section(".note.gnu.build-id");
    if (!note) continue;
    // The note is its header, "GNU" and the id, which is therefore the end of it.
    const BuildId expected(note->data.subspan(16));
    EXPECT_EQ(ElfFile::parse(region.bytes())->build_id(), expected) << path;
    const std::vector<std::byte> stripped = without_sections(region.bytes());
    EXPECT_EQ(ElfFile::parse(stripped)->build_id(), expected) << path;
  }
}

TEST(ElfFile, ReadsTheVdsoFromMemory) {
  if (vdso_image().empty()) GTEST_SKIP() << "the kernel maps no vdso";
  const auto file = ElfFile::parse(vdso_image());
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->build_id().empty());
  EXPECT_TRUE(file->find_eh_frame().has_value());
  bool found = false;
  file->for_each_symbol(SymbolTableKind::dynsym, [&found](const ElfSymbol& symbol) {
    found |= symbol.name.find("clock_gettime") != std::string_view::npos;
  });
  EXPECT_TRUE(found);
}

std::vector<std::byte> header_only(std::uint8_t elf_class, std::uint8_t byte_order, std::uint16_t machine) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = elf_class;
  header.e_ident[EI_DATA] = byte_order;
  header.e_machine = machine;
  std::vector<std::byte> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(ElfFile, AcceptsThreeArchitecturesAndNamesWhatItRefuses) {
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64))->architecture(),
            Architecture::x86_64);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS64, ELFDATA2LSB, EM_AARCH64))->architecture(),
            Architecture::aarch64);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS32, ELFDATA2LSB, EM_386))->architecture(), Architecture::i386);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS64, ELFDATA2LSB, EM_386)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS64, ELFDATA2LSB, EM_RISCV)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS32, ELFDATA2LSB, EM_X86_64)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(ElfFile::parse(header_only(ELFCLASS64, ELFDATA2MSB, EM_X86_64)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(ElfFile::parse({}).error().code, ErrorCode::corrupt);
  const std::vector<std::byte> text(200, std::byte{'x'});
  EXPECT_EQ(ElfFile::parse(text).error().code, ErrorCode::corrupt);
  auto cut = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  cut.resize(20);
  EXPECT_EQ(ElfFile::parse(cut).error().code, ErrorCode::corrupt);
}

TEST(ElfFile, UnpacksASectionOfI386) {
  const MappedRegion region = map(kLibrary386);
  const auto file = ElfFile::parse(region.bytes());
  const auto section = file->find_section(".debug_info");
  ASSERT_TRUE(section && section->is_compressed());
  const std::vector<std::byte> writable(region.bytes().begin(), region.bytes().end());
  const Libelf truth(writable);
  Elf_Scn* theirs = nullptr;
  for (std::size_t i = 1; i < file->section_count(); ++i) {
    if (file->section(i)->name == ".debug_info") theirs = elf_getscn(truth.get(), i);
  }
  ASSERT_GE(elf_compress(theirs, 0, 0), 0);
  const Elf_Data* data = elf_getdata(theirs, nullptr);
  const auto ours = file->uncompressed(*section);
  ASSERT_TRUE(ours.ok());
  ASSERT_EQ(ours->size(), data->d_size);
  EXPECT_EQ(std::memcmp(ours->data(), data->d_buf, data->d_size), 0);
  EXPECT_EQ(ElfFile::uncompressed_bytes(*section), data->d_size);
}

void expect_survival_of_cuts(std::span<const std::byte> image) {
  for (std::size_t size = 0; size < image.size(); size += 7) {
    // A heap copy of exactly this size, so that a sanitizer sees a read past it.
    const std::vector<std::byte> cut(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size));
    const auto file = ElfFile::parse(cut);
    if (!file) continue;
    EXPECT_LE(file->build_id().bytes().size(), BuildId::kMaxBytes);
    EXPECT_LE(file->find_eh_frame().value_or(ElfRange{}).data.size(), cut.size());
    std::size_t symbols = 0;
    file->for_each_symbol(SymbolTableKind::dynsym, [&symbols](const ElfSymbol&) { ++symbols; });
    EXPECT_LE(symbols, cut.size() / sizeof(Elf32_Sym));
  }
}

TEST(ElfFile, SurvivesBeingCutAnywhere) {
  expect_survival_of_cuts(map(kLibrary386).bytes());
  if (vdso_image().empty()) GTEST_SKIP() << "the kernel maps no vdso";
  expect_survival_of_cuts(vdso_image());
}

// Headers of `count` segments and sections, all zero, behind an ELF header that counts them in section 0.
std::vector<std::byte> with_headers(std::uint32_t segments, std::uint64_t sections) {
  std::vector<std::byte> bytes = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_phoff = header.e_shoff = sizeof header;
  header.e_phnum = PN_XNUM;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  std::memcpy(bytes.data(), &header, sizeof header);
  Elf64_Shdr first{};
  first.sh_info = segments;
  first.sh_size = sections;
  bytes.resize(sizeof header + std::max(segments * sizeof(Elf64_Phdr), sections * sizeof(Elf64_Shdr)));
  std::memcpy(bytes.data() + sizeof header, &first, sizeof first);
  return bytes;
}

TEST(ElfFile, RefusesMoreHeadersThanAnyProgramHas) {
  EXPECT_TRUE(ElfFile::parse(with_headers(ElfFile::kMaxSegments, ElfFile::kMaxSections)).ok());
  EXPECT_EQ(ElfFile::parse(with_headers(ElfFile::kMaxSegments + 1, 2)).error().code, ErrorCode::exhausted);
  EXPECT_EQ(ElfFile::parse(with_headers(2, ElfFile::kMaxSections + 1)).error().code, ErrorCode::exhausted);
}

TEST(ElfFile, BoundsTextsThatDoNotEnd) {
  const std::vector<std::byte> table(100, std::byte{'x'});
  EXPECT_EQ(load_bounded_string(table, 0, 10), "xxxxxxxxxx");
  EXPECT_EQ(load_bounded_string(table, 95, 10), "");
  EXPECT_EQ(load_bounded_string(table, 100, 10), "");
}

ElfSection compressed_section(std::span<const std::byte> data) {
  ElfSection section;
  section.flags = SHF_COMPRESSED;
  section.data = data;
  return section;
}

std::vector<std::byte> compress_text(const std::string& text, std::uint32_t type,
                                     std::uint64_t claimed_size) {
  uLongf size = compressBound(text.size());
  Elf64_Chdr header{};
  header.ch_type = type;
  header.ch_size = claimed_size;
  std::vector<std::byte> bytes(sizeof header + size);
  std::memcpy(bytes.data(), &header, sizeof header);
  compress(reinterpret_cast<Bytef*>(bytes.data() + sizeof header), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  bytes.resize(sizeof header + size);
  return bytes;
}

TEST(ElfFile, InflatesCompressedSections) {
  const auto elf = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  const auto file = ElfFile::parse(elf);
  const std::string text(100000, 'a');
  const auto bytes = compress_text(text, ELFCOMPRESS_ZLIB, text.size());
  const auto inflated = file->uncompressed(compressed_section(bytes));
  ASSERT_TRUE(inflated.ok());
  EXPECT_EQ(inflated->size(), text.size());
  EXPECT_EQ(inflated->back(), std::byte{'a'});
}

TEST(ElfFile, InflatesAsMuchAsMayBeHeld) {
  const auto elf = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  const auto file = ElfFile::parse(elf);
  const std::string text(1000, 'a');
  const auto bytes = compress_text(text, ELFCOMPRESS_ZLIB, text.size());
  EXPECT_TRUE(file->uncompressed(compressed_section(bytes), 1000).ok());
  const auto refused = file->uncompressed(compressed_section(bytes), 999);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
}

TEST(ElfFile, RefusesCompressedSectionsThatLie) {
  const auto elf = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  const auto file = ElfFile::parse(elf);
  const std::string text(1000, 'a');
  for (const std::uint64_t claim :
       {std::uint64_t{999}, std::uint64_t{1001}, std::uint64_t{1} << 29, ~std::uint64_t{0}}) {
    const auto bytes = compress_text(text, ELFCOMPRESS_ZLIB, claim);
    const auto result = file->uncompressed(compressed_section(bytes));
    ASSERT_FALSE(result.ok()) << claim;
    EXPECT_EQ(result.error().code, ErrorCode::corrupt);
  }
  const auto unknown = compress_text(text, 77, text.size());
  EXPECT_EQ(file->uncompressed(compressed_section(unknown)).error().code, ErrorCode::unsupported);
  EXPECT_EQ(file->uncompressed(compressed_section({})).error().code, ErrorCode::corrupt);
}

// A file with one loaded segment: 0x40 bytes at 0x1000 that are in memory from 0x5000 on, of 0x80 there.
std::vector<std::byte> with_segment(Elf64_Phdr segment, std::size_t file_bytes = 0x2000) {
  std::vector<std::byte> bytes = header_only(ELFCLASS64, ELFDATA2LSB, EM_X86_64);
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  header.e_phentsize = sizeof segment;
  bytes.resize(file_bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &segment, sizeof segment);
  return bytes;
}

constexpr Elf64_Phdr kSegment{PT_LOAD, PF_R, 0x1000, 0x5000, 0x5000, 0x40, 0x80, 1};

TEST(ElfFile, ASegmentHasTheBytesThatAreInTheFile) {
  const auto bytes = with_segment(kSegment);
  const auto file = ElfFile::parse(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->vaddr_of_offset(0xfff), std::nullopt);
  EXPECT_EQ(file->vaddr_of_offset(0x1000), 0x5000U);
  EXPECT_EQ(file->vaddr_of_offset(0x103f), 0x503fU);
  EXPECT_EQ(file->vaddr_of_offset(0x1040), std::nullopt);
  EXPECT_EQ(file->offset_of_vaddr(0x4fff), std::nullopt);
  EXPECT_EQ(file->offset_of_vaddr(0x5000), 0x1000U);
  EXPECT_EQ(file->offset_of_vaddr(0x503f), 0x103fU);
  EXPECT_EQ(file->offset_of_vaddr(0x5040), std::nullopt);
  EXPECT_TRUE(file->data_at(0x4fff).empty());
  EXPECT_EQ(file->data_at(0x5000).size(), 0x40U);
  EXPECT_EQ(file->data_at(0x503f).size(), 1U);
  EXPECT_TRUE(file->data_at(0x5040).empty());
}

TEST(ElfFile, ASegmentThatTheFileHasAPartOfHasThatPart) {
  const auto cut = with_segment(kSegment, 0x1010);
  EXPECT_EQ(ElfFile::parse(cut)->data_at(0x5000).size(), 0x10U);
  EXPECT_TRUE(ElfFile::parse(cut)->data_at(0x5010).empty());
  const auto without = with_segment(kSegment, 0x1000);
  EXPECT_TRUE(ElfFile::parse(without)->data_at(0x5000).empty());
}

TEST(ElfFile, SegmentsOfOtherKindsAreNotLoaded) {
  Elf64_Phdr note = kSegment;
  note.p_type = PT_NOTE;
  const auto bytes = with_segment(note);
  EXPECT_EQ(ElfFile::parse(bytes)->vaddr_of_offset(0x1000), std::nullopt);
  EXPECT_EQ(ElfFile::parse(bytes)->offset_of_vaddr(0x5000), std::nullopt);
  EXPECT_TRUE(ElfFile::parse(bytes)->data_at(0x5000).empty());
}

// A note with a name of four bytes, and bytes behind it.
std::string note_of(std::uint32_t type, std::string name, const std::string& description) {
  const Elf64_Nhdr header{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(description.size()),
                          type};
  name.resize((name.size() + 3) / 4 * 4);
  std::string padded = description;
  padded.resize((padded.size() + 3) / 4 * 4);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + name + padded;
}

TEST(ElfFile, FindsTheBuildIdAmongOtherNotes) {
  const auto id_in = [](const std::string& notes) {
    Elf64_Phdr segment = kSegment;
    segment.p_type = PT_NOTE;
    segment.p_filesz = notes.size();
    segment.p_align = 4;
    auto bytes = with_segment(segment);
    std::memcpy(bytes.data() + segment.p_offset, notes.data(), notes.size());
    return ElfFile::parse(bytes)->build_id().hex();
  };
  const std::string gnu("GNU", 4);
  const std::string wanted = note_of(NT_GNU_BUILD_ID, gnu, "\x12\x34\x56");
  EXPECT_EQ(id_in(wanted), "123456");
  EXPECT_EQ(id_in(note_of(NT_GNU_ABI_TAG, gnu, "abcde") + wanted), "123456");
  EXPECT_EQ(id_in(note_of(NT_GNU_BUILD_ID, std::string("XNU", 4), "abcd") + wanted), "123456");
  EXPECT_EQ(id_in(note_of(NT_GNU_BUILD_ID, std::string("GNU2", 5), "abcd") + wanted), "123456");
  EXPECT_EQ(id_in(note_of(NT_GNU_ABI_TAG, gnu, "abcd")), "");
  EXPECT_EQ(id_in(""), "");
}

}  // namespace
}  // namespace ddprof
