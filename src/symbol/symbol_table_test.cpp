#include "symbol/symbol_table.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "elf/elf_file.hpp"

// Functions of this program with a known extent.
extern "C" __attribute__((noinline, used)) int ddprof_symbol_test_function(int value) {
  return value * 3 + 1;
}
asm(R"(
  .text
  .type ddprof_symbol_test_unsized, @notype
ddprof_symbol_test_unsized:
  nop
  nop
  ret
  .type ddprof_symbol_test_after, @function
ddprof_symbol_test_after:
  ret
  .size ddprof_symbol_test_after, . - ddprof_symbol_test_after
)");
extern "C" void ddprof_symbol_test_unsized();

namespace ddprof {
namespace {

struct TestSymbol {
  std::string_view name;
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  unsigned type = STT_FUNC;
  unsigned binding = STB_GLOBAL;
  std::uint16_t section = 1;  // 1: code at 0x1000, 2: data at 0x9000
};

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The smallest ELF file with code, data and a symbol table.
std::string make_elf(const std::vector<TestSymbol>& symbols, std::uint32_t table_type = SHT_SYMTAB) {
  std::string names(1, '\0');
  std::string table(sizeof(Elf64_Sym), '\0');
  for (const TestSymbol& symbol : symbols) {
    Elf64_Sym entry{};
    entry.st_name = static_cast<Elf64_Word>(names.size());
    entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, symbol.type));
    entry.st_shndx = symbol.section;
    entry.st_value = symbol.start;
    entry.st_size = symbol.size;
    append(table, entry);
    names.append(symbol.name) += '\0';
  }
  const std::size_t table_at = sizeof(Elf64_Ehdr), names_at = table_at + table.size();
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = names_at + names.size();
  header.e_shnum = 5;
  std::string bytes;
  append(bytes, header);
  bytes += table + names;
  append(bytes, Elf64_Shdr{});
  append(bytes, Elf64_Shdr{0, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, 0, 0x1000, 0, 0, 16, 0});
  append(bytes, Elf64_Shdr{0, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x9000, 0, 0x1000, 0, 0, 16, 0});
  append(bytes, Elf64_Shdr{0, table_type, 0, 0, table_at, table.size(), 4, 0, 8, sizeof(Elf64_Sym)});
  append(bytes, Elf64_Shdr{0, SHT_STRTAB, 0, 0, names_at, names.size(), 0, 0, 1, 0});
  return bytes;
}

SymbolTable table_of(const std::vector<TestSymbol>& symbols, std::uint32_t table_type = SHT_SYMTAB) {
  static std::deque<std::string> images;  // where the names are
  const std::string& bytes = images.emplace_back(make_elf(symbols, table_type));
  const Result<ElfFile> file = ElfFile::parse(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(file.ok());
  return SymbolTable::build(*file).value();
}

std::string name_at(const SymbolTable& table, std::uint64_t address) {
  const std::optional<Symbol> symbol = table.find(address);
  return symbol ? std::string(symbol->name) : "";
}

TEST(SymbolTable, NamesOnlyWhatASymbolCovers) {
  const SymbolTable table = table_of({{"one", 0x1000, 0x10}, {"two", 0x1020, 0x10}});
  EXPECT_EQ(name_at(table, 0xfff), "");
  EXPECT_EQ(name_at(table, 0x1000), "one");
  EXPECT_EQ(name_at(table, 0x100f), "one");
  EXPECT_EQ(name_at(table, 0x1010), "");
  EXPECT_EQ(name_at(table, 0x102f), "two");
  EXPECT_EQ(name_at(table, 0x1030), "");
}

TEST(SymbolTable, LeavesOutDataUndefinedAndAbsoluteSymbols) {
  const SymbolTable table = table_of({{"data", 0x9000, 8, STT_OBJECT, STB_GLOBAL, 2},
                                      {"function_in_data", 0x9010, 8, STT_FUNC, STB_GLOBAL, 2},
                                      {"object_in_code", 0x1000, 8, STT_OBJECT},
                                      {"undefined", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                      {"absolute", 0x1010, 8, STT_FUNC, STB_GLOBAL, SHN_ABS}});
  EXPECT_TRUE(table.empty());
}

TEST(SymbolTable, PrefersTheNameThatOthersLinkAgainst) {
  EXPECT_EQ(name_at(table_of({{"private_alias", 0x1000, 4, STT_FUNC, STB_LOCAL},
                              {"write", 0x1000, 4, STT_FUNC, STB_WEAK},
                              {"__write", 0x1000, 4}}),
                    0x1000),
            "write");
  EXPECT_EQ(name_at(table_of({{"b", 0x1000, 4}, {"a", 0x1000, 4}}), 0x1000), "a");
}

TEST(SymbolTable, GivesAnUnsizedSymbolTheRoomUpToTheNext) {
  const SymbolTable table = table_of({{"assembly", 0x1000, 0, STT_NOTYPE, STB_LOCAL},
                                      {"sized", 0x1100, 0x40},
                                      {"label_inside", 0x1120, 0, STT_NOTYPE, STB_LOCAL},
                                      {"last", 0x1f00, 0}});
  EXPECT_EQ(name_at(table, 0x10ff), "assembly");
  EXPECT_EQ(name_at(table, 0x1130), "sized");
  EXPECT_EQ(name_at(table, 0x1140), "");
  EXPECT_EQ(name_at(table, 0x1fff), "last");
  EXPECT_EQ(name_at(table, 0x2000), "");
}

TEST(SymbolTable, DoesNotStretchUnsizedSymbolsOfStrippedFiles) {
  EXPECT_TRUE(table_of({{"exported", 0x1000, 0}}, SHT_DYNSYM).empty());
  EXPECT_EQ(name_at(table_of({{"exported", 0x1000, 4}}, SHT_DYNSYM), 0x1003), "exported");
}

TEST(SymbolTable, IgnoresLabelsOfToolsAndSizesBeyondTheSection) {
  const SymbolTable table = table_of(
      {{"$x", 0x1000, 0, STT_NOTYPE}, {".annobin_a", 0x1004, 0, STT_NOTYPE}, {"long", 0x1ff0, 0x100}});
  EXPECT_EQ(name_at(table, 0x1000), "");
  EXPECT_EQ(name_at(table, 0x1fff), "long");
  EXPECT_EQ(name_at(table, 0x2000), "");
}

TEST(SymbolTable, GivesOverlappingCodeToTheInnermostSymbol) {
  const SymbolTable table =
      table_of({{"outer", 0x1000, 0x100}, {"inner", 0x1040, 0x10}, {"crossing", 0x10f0, 0x20}});
  EXPECT_EQ(name_at(table, 0x103f), "outer");
  EXPECT_EQ(name_at(table, 0x1040), "inner");
  EXPECT_EQ(name_at(table, 0x1050), "outer");
  EXPECT_EQ(name_at(table, 0x10f8), "crossing");
  EXPECT_EQ(name_at(table, 0x110f), "crossing");
  const std::optional<Symbol> outer = table.find(0x1060);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->start, 0x1000U);
  EXPECT_EQ(outer->size, 0x100U);
}

TEST(SymbolTable, ASymbolBehindTheCodeIsNone) {
  EXPECT_TRUE(table_of({{"behind", 0x2000, 0x10}, {"before", 0xfff, 0x10}}).empty());
}

TEST(SymbolTable, AnUnsizedSymbolMayBeginWhereASizedOneEnds) {
  const SymbolTable table = table_of({{"sized", 0x1000, 0x10}, {"open", 0x1010, 0, STT_NOTYPE}});
  EXPECT_EQ(name_at(table, 0x100f), "sized");
  EXPECT_EQ(name_at(table, 0x1010), "open");
}

TEST(SymbolTable, UnsizedAliasesShareTheRoomUpToTheNext) {
  const SymbolTable table =
      table_of({{"b", 0x1000, 0, STT_NOTYPE}, {"a", 0x1000, 0, STT_NOTYPE}, {"next", 0x1020, 0, STT_NOTYPE}});
  EXPECT_EQ(name_at(table, 0x101f), "a");
  EXPECT_EQ(name_at(table, 0x1020), "next");
}

// Of a file whose section headers do not tell: where a segment is executable.
TEST(SymbolTable, ASymbolOfAnUnknownSectionIsCodeWhereTheSegmentIs) {
  constexpr std::uint16_t kUnknownSection = 0x100;
  std::string bytes = make_elf({{"code", 0x5000, 0x10, STT_FUNC, STB_GLOBAL, kUnknownSection},
                                {"data", 0x6000, 0x10, STT_FUNC, STB_GLOBAL, kUnknownSection},
                                {"not_loaded", 0x7000, 0x10, STT_FUNC, STB_GLOBAL, kUnknownSection},
                                {"common", 0x5020, 0x10, STT_FUNC, STB_GLOBAL, SHN_COMMON}});
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_phoff = bytes.size();
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  std::memcpy(bytes.data(), &header, sizeof header);
  append(bytes, Elf64_Phdr{PT_LOAD, PF_R | PF_X, 0, 0x5000, 0x5000, 0, 0x1000, 1});
  append(bytes, Elf64_Phdr{PT_LOAD, PF_R | PF_W, 0, 0x6000, 0x6000, 0, 0x1000, 1});
  append(bytes, Elf64_Phdr{PT_NOTE, PF_R | PF_X, 0, 0x7000, 0x7000, 0, 0x1000, 1});
  const Result<ElfFile> file = ElfFile::parse(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok());
  const SymbolTable table = SymbolTable::build(*file).value();
  EXPECT_EQ(name_at(table, 0x5008), "code");
  EXPECT_EQ(name_at(table, 0x6008), "");
  EXPECT_EQ(name_at(table, 0x7008), "");
  EXPECT_EQ(name_at(table, 0x5028), "");
}

// This very program, read from its file.
class OwnSymbols : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    Result<MappedRegion> region = MappedRegion::map_file(file.get());
    ASSERT_TRUE(region.ok());
    region_ = std::move(*region);
    const Result<ElfFile> elf = ElfFile::parse(region_.bytes());
    ASSERT_TRUE(elf.ok());
    table_ = SymbolTable::build(*elf).value();
  }

  // The address of running code as its file has it.
  template <typename Function>
  static std::uint64_t elf_address(Function* function) {
    std::uint64_t bias = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
          return 1;  // the first is the program itself
        },
        &bias);
    return reinterpret_cast<std::uint64_t>(function) - bias;
  }

  MappedRegion region_;
  SymbolTable table_;
};

TEST_F(OwnSymbols, NamesItsOwnFunctions) {
  const std::uint64_t start = elf_address(&ddprof_symbol_test_function);
  const std::optional<Symbol> symbol = table_.find(start + 1);
  ASSERT_TRUE(symbol);
  EXPECT_EQ(symbol->name, "ddprof_symbol_test_function");
  EXPECT_EQ(symbol->start, start);
  EXPECT_GT(symbol->size, 1U);
}

TEST_F(OwnSymbols, EndsHandWrittenAssemblyAtTheNextSymbol) {
  const std::uint64_t start = elf_address(&ddprof_symbol_test_unsized);
  EXPECT_EQ(name_at(table_, start), "ddprof_symbol_test_unsized");
  EXPECT_EQ(name_at(table_, start + 2), "ddprof_symbol_test_unsized");
  EXPECT_EQ(name_at(table_, start + 3), "ddprof_symbol_test_after");
}

struct ClosePipe {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

TEST_F(OwnSymbols, AgreesWithNmOnEverySizedFunction) {
  if (std::system("command -v nm >/dev/null 2>&1") != 0) GTEST_SKIP() << "nm is not installed";
  const std::string program = std::string("/proc/") + std::to_string(getpid()) + "/exe";
  const std::unique_ptr<std::FILE, ClosePipe> nm(popen(("nm --defined-only -S " + program).c_str(), "r"));
  ASSERT_TRUE(nm);
  const auto code = ElfFile::parse(region_.bytes())->find_section(".text");
  ASSERT_TRUE(code);
  std::size_t checked = 0;
  char line[65536];
  while (std::fgets(line, sizeof line, nm.get()) != nullptr) {
    unsigned long long start = 0, size = 0;
    char type = 0;
    if (std::sscanf(line, "%llx %llx %c", &start, &size, &type) != 3 || std::strchr("tTwWi", type) == nullptr)
      continue;
    if (start - code->vaddr >= code->size) continue;  // "weak" may also be a thread's variable
    const std::optional<Symbol> symbol = table_.find(start);
    ASSERT_TRUE(symbol) << line;
    EXPECT_EQ(symbol->start, start) << line;
    EXPECT_TRUE(table_.find(start + size - 1)) << line;
    ++checked;
  }
  EXPECT_GT(checked, 100U);
  EXPECT_EQ(name_at(table_, elf_address(&ddprof_symbol_test_function)), "ddprof_symbol_test_function");
}

TEST_F(OwnSymbols, NamesLinkageTableStubs) {
  std::size_t stubs = 0;
  const Result<ElfFile> elf = ElfFile::parse(region_.bytes());
  for (const char* name : {".plt", ".plt.sec"}) {
    const auto section = elf->find_section(name);
    for (std::uint64_t at = 0; section && at < section->size; at += 16) {
      stubs += name_at(table_, section->vaddr + at).ends_with("@plt") ? 1 : 0;
    }
  }
  // libc and libstdc++ are shared, so this program calls through many stubs.
  EXPECT_GT(stubs, 10U);
}

// The C library calls the functions that it chooses at run time through stubs, whose slots no symbol names.
TEST(SymbolTable, NamesStubsOfFunctionsThatAreChosenAtRunTime) {
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&::gnu_get_libc_version), &info), 0);
  const UniqueFd fd(::open(info.dli_fname, O_RDONLY | O_CLOEXEC));
  const Result<MappedRegion> region = MappedRegion::map_file(fd.get());
  ASSERT_TRUE(region.ok());
  const ElfFile elf = ElfFile::parse(region->bytes()).value();
  const SymbolTable table = SymbolTable::build(elf).value();
  const auto stubs = elf.find_section(".plt");
  if (!stubs) GTEST_SKIP() << info.dli_fname << " has no linkage table";
  std::set<std::string> names;
  for (std::uint64_t at = 0; at < stubs->size; at += 16) names.insert(name_at(table, stubs->vaddr + at));
  EXPECT_TRUE(names.contains("strnlen@plt") || names.contains("strchr@plt") || names.contains("memcpy@plt"));
}

TEST(SymbolTable, RefusesMoreSymbolsThanMemoryHolds) {
  const std::vector<TestSymbol> symbols(20000, {"function", 0x1000, 0x10});
  const std::string bytes = make_elf(symbols, SHT_SYMTAB);
  const auto file = ElfFile::parse(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(SymbolTable::build(*file, {std::uint64_t{1} << 20U}).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(SymbolTable::build(*file).ok());
}

TEST(SymbolTable, CutsNamesThatDoNotEnd) {
  const SymbolTable table = table_of({{std::string(10000, 'x'), 0x1000, 0x10}});
  EXPECT_EQ(name_at(table, 0x1000).size(), ElfFile::kMaxSymbolNameBytes);
}

}  // namespace
}  // namespace ddprof
