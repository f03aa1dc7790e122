#include "elf/thread_symbol.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace ddprof {
namespace {

using Kind = ThreadSymbol::Slot::Kind;

// A library with two variables of threads, "first" (symbol 1) and "second" (symbol 2), and relocations.
class ThreadLibrary {
 public:
  Elf64_Half type = ET_DYN;
  Elf64_Phdr segment{.p_type = PT_TLS, .p_memsz = 0x28, .p_align = 16};
  std::vector<Elf64_Sym> symbols = {{}, variable(1, 8), variable(7, 16)};
  Elf64_Word symbol_table = SHT_DYNSYM;
  std::vector<Elf64_Rela> relocations;
  std::size_t cut_bytes = 0;  // of the relocations

  static Elf64_Sym variable(Elf64_Word name, Elf64_Addr value) {
    return {.st_name = name, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS), .st_shndx = 1, .st_value = value};
  }
  void relocate(std::uint64_t kind, std::uint64_t symbol, Elf64_Addr at, std::int64_t addend = 0) {
    relocations.push_back({at, ELF64_R_INFO(symbol, kind), addend});
  }
  [[nodiscard]] std::optional<ThreadSymbol> find(std::string_view name) {
    const std::string names("\0first\0second\0", 14);
    bytes_.assign(sizeof(Elf64_Ehdr) + sizeof segment, std::byte{});
    std::vector<Elf64_Shdr> headers(1);
    headers.push_back(section(symbol_table, symbols.data(), symbols.size() * sizeof(Elf64_Sym)));
    headers.back().sh_link = 2;
    headers.back().sh_entsize = sizeof(Elf64_Sym);
    headers.push_back(section(SHT_STRTAB, names.data(), names.size()));
    headers.push_back(
        section(SHT_RELA, relocations.data(), relocations.size() * sizeof(Elf64_Rela) - cut_bytes));
    Elf64_Ehdr header{.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                      .e_type = type,
                      .e_machine = EM_X86_64,
                      .e_version = EV_CURRENT,
                      .e_phoff = sizeof header,
                      .e_shoff = bytes_.size(),
                      .e_ehsize = sizeof header,
                      .e_phentsize = sizeof segment,
                      .e_phnum = 1,
                      .e_shentsize = sizeof(Elf64_Shdr),
                      .e_shnum = static_cast<Elf64_Half>(headers.size()),
                      .e_shstrndx = 2};
    section(SHT_NULL, headers.data(), headers.size() * sizeof(Elf64_Shdr));
    std::memcpy(bytes_.data(), &header, sizeof header);
    std::memcpy(bytes_.data() + sizeof header, &segment, sizeof segment);
    const auto elf = ElfFile::parse(bytes_);
    return elf.ok() ? find_thread_symbol(*elf, name) : std::nullopt;
  }

 private:
  Elf64_Shdr section(Elf64_Word kind, const void* data, std::size_t size) {
    const Elf64_Shdr header{.sh_type = kind, .sh_offset = bytes_.size(), .sh_size = size};
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
    return header;
  }

  std::vector<std::byte> bytes_;
};

std::vector<std::pair<Kind, std::uint64_t>> slots_of(const std::optional<ThreadSymbol>& symbol) {
  std::vector<std::pair<Kind, std::uint64_t>> slots;
  for (const ThreadSymbol::Slot& slot : symbol.value_or(ThreadSymbol{}).slots)
    slots.emplace_back(slot.kind, slot.vaddr);
  return slots;
}

TEST(ThreadSymbol, IsFoundByItsNameAmongVariablesOfThreads) {
  ThreadLibrary library;
  EXPECT_EQ(library.find("first")->offset, 8U);
  EXPECT_EQ(library.find("second")->offset, 16U);
  EXPECT_FALSE(library.find("third"));
  library.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  library.symbols[2].st_shndx = SHN_UNDEF;
  EXPECT_FALSE(library.find("first"));
  EXPECT_FALSE(library.find("second"));
  library = {};
  library.segment.p_type = PT_LOAD;
  EXPECT_FALSE(library.find("first"));
}

TEST(ThreadSymbol, OfAProgramLiesBelowTheThreadPointer) {
  ThreadLibrary library;
  EXPECT_EQ(library.find("first")->executable_offset, 8 - 0x30);  // the block is rounded up to 16
  library.segment.p_memsz = 0x30;
  EXPECT_EQ(library.find("first")->executable_offset, 8 - 0x30);
  library.segment.p_align = 0;
  library.segment.p_memsz = 9;
  EXPECT_EQ(library.find("first")->executable_offset, -1);
  library.segment.p_memsz = 8;  // nothing, at the end of its block
  EXPECT_EQ(library.find("first")->executable_offset, 0);
  library.segment.p_memsz = 7;
  EXPECT_FALSE(library.find("first"));
}

TEST(ThreadSymbol, ABlockThatNoThreadHasIsNotBelieved) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  ThreadLibrary library;
  library.segment.p_memsz = kMost;
  EXPECT_TRUE(library.find("first"));
  library.segment.p_memsz = kMost + 1;
  EXPECT_FALSE(library.find("first"));
  library = {};
  library.segment.p_align = kMost;
  EXPECT_TRUE(library.find("first"));
  library.segment.p_align = 2 * kMost;
  EXPECT_FALSE(library.find("first"));
}

TEST(ThreadSymbol, OfAStaticProgramIsInTheOtherTable) {
  ThreadLibrary program;
  program.symbol_table = SHT_SYMTAB;
  program.relocate(R_X86_64_TPOFF64, 1, 0x4000);
  EXPECT_FALSE(program.find("first"));
  program.type = ET_EXEC;
  ASSERT_TRUE(program.find("first"));
  EXPECT_TRUE(program.find("first")->slots.empty());  // those numbers are of the dynamic table
}

TEST(ThreadSymbol, HasTheSlotsThatTheLoaderFillsForIt) {
  ThreadLibrary library;
  library.relocate(R_X86_64_TLSDESC, 1, 0x4000);
  library.relocate(R_X86_64_DTPMOD64, 1, 0x4010);
  library.relocate(R_X86_64_TPOFF64, 0, 0x4020, 8);   // bound to the file: by its offset
  library.relocate(R_X86_64_TLSDESC, 2, 0x4030);      // the other variable
  library.relocate(R_X86_64_TPOFF64, 0, 0x4040, 16);  // likewise
  library.relocate(R_X86_64_TLSDESC, 1, 0x4050, 4);   // behind it
  library.relocate(R_X86_64_DTPMOD64, 0, 0x4060, 8);  // the module alone
  library.relocate(R_X86_64_64, 1, 0x4070);           // no slot
  EXPECT_EQ(slots_of(library.find("first")),
            (std::vector<std::pair<Kind, std::uint64_t>>{
                {Kind::descriptor, 0x4000}, {Kind::index, 0x4010}, {Kind::offset, 0x4020}}));
  library.cut_bytes = 5 * sizeof(Elf64_Rela) + 1;  // the third does not end
  EXPECT_EQ(slots_of(library.find("first")).size(), 2U);
}

TEST(ThreadSymbol, HasSixteenSlotsAtMost) {
  ThreadLibrary library;
  for (std::uint64_t i = 0; i < 100; ++i) library.relocate(R_X86_64_TLSDESC, 1, 0x4000 + 16 * i);
  EXPECT_EQ(slots_of(library.find("first")).size(), 16U);
}

}  // namespace
}  // namespace ddprof
