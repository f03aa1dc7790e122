#include "session/unseen_allocator.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ddprof {
namespace {

// A file with program headers of these types, and symbols of these names: defined ones.
class Built {
 public:
  Built(std::string path, const std::vector<std::uint32_t>& segments,
        const std::vector<std::string>& symbols) {
    std::string names(1, '\0');
    std::vector<Elf64_Sym> table(1);
    for (const std::string& symbol : symbols) {
      Elf64_Sym entry{};
      entry.st_name = static_cast<Elf64_Word>(names.size());
      entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      entry.st_shndx = 1;
      table.push_back(entry);
      names += symbol + '\0';
    }
    const std::size_t headers_at = sizeof(Elf64_Ehdr);
    const std::size_t symbols_at = headers_at + segments.size() * sizeof(Elf64_Phdr);
    const std::size_t names_at = symbols_at + table.size() * sizeof(Elf64_Sym);
    const std::size_t sections_at = (names_at + names.size() + 7) / 8 * 8;
    bytes_.resize(sections_at + 3 * sizeof(Elf64_Shdr));
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_phoff = headers_at;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(segments.size());
    header.e_shoff = sections_at;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    put(0, header);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      Elf64_Phdr segment{};
      segment.p_type = segments[i];
      put(headers_at + i * sizeof segment, segment);
    }
    for (std::size_t i = 0; i < table.size(); ++i) put(symbols_at + i * sizeof(Elf64_Sym), table[i]);
    std::memcpy(bytes_.data() + names_at, names.data(), names.size());
    Elf64_Shdr dynsym{};
    dynsym.sh_type = SHT_DYNSYM;
    dynsym.sh_offset = symbols_at;
    dynsym.sh_size = table.size() * sizeof(Elf64_Sym);
    dynsym.sh_entsize = sizeof(Elf64_Sym);
    dynsym.sh_link = 2;
    put(sections_at + sizeof dynsym, dynsym);
    Elf64_Shdr strings{};
    strings.sh_type = SHT_STRTAB;
    strings.sh_offset = names_at;
    strings.sh_size = names.size();
    put(sections_at + 2 * sizeof strings, strings);
    auto made = std::make_shared<CodeFile>();
    made->kind = CodeFile::Kind::elf;
    made->path = std::move(path);
    made->elf = ElfFile::parse(std::as_bytes(std::span(bytes_))).value();
    file = made;
  }

  std::shared_ptr<const CodeFile> file;

 private:
  template <typename Part>
  void put(std::size_t at, const Part& part) {
    std::memcpy(bytes_.data() + at, &part, sizeof part);
  }
  std::vector<char> bytes_;
};

TEST(UnseenAllocator, NamesWhatTheLibraryCannotSee) {
  const Built program("/bin/server", {PT_LOAD, PT_INTERP}, {"main"});
  const Built library("/run/ddprof/libddprof-0123.so", {PT_LOAD}, {"malloc"});
  const Built libc("/lib/libc.so.6", {PT_LOAD}, {"malloc"});
  const Built jemalloc("/lib/libjemalloc.so.2", {PT_LOAD}, {"malloc"});
  using Files = std::vector<std::shared_ptr<const CodeFile>>;
  EXPECT_EQ(why_unseen(*program.file, Files{program.file, library.file, libc.file}), "")
      << "it may have allocated little";
  EXPECT_EQ(why_unseen(*program.file, Files{program.file, libc.file}),
            "libddprof.so was not loaded into server");
  EXPECT_EQ(why_unseen(*program.file, Files{program.file, jemalloc.file, library.file, libc.file}),
            "those of libjemalloc.so.2 do not pass libddprof.so, unless there were few");
  const Built fixed("/bin/fixed", {PT_LOAD}, {});
  EXPECT_EQ(why_unseen(*fixed.file, Files{fixed.file}), "fixed is static");
  const Built own("/bin/own", {PT_LOAD, PT_INTERP}, {"free", "malloc"});
  EXPECT_EQ(why_unseen(*own.file, Files{own.file, library.file, libc.file}),
            "own has an allocator of its own");
  CodeFile unopened;
  EXPECT_EQ(why_unseen(unopened, {}), "");
}

}  // namespace
}  // namespace ddprof
