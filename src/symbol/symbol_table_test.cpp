#include "symbol/symbol_table.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

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

// What is found for some addresses.
class Found {
 public:
  Found(const ElfFile& file, std::vector<std::uint64_t> addresses) : addresses_(std::move(addresses)) {
    std::sort(addresses_.begin(), addresses_.end());
    symbols_ = find_symbols(file, addresses_).value();
  }

  [[nodiscard]] std::optional<Symbol> find(std::uint64_t address) const {
    const auto at = std::lower_bound(addresses_.begin(), addresses_.end(), address);
    EXPECT_TRUE(at != addresses_.end() && *at == address) << "was not asked for";
    const Symbol& symbol = symbols_[static_cast<std::size_t>(at - addresses_.begin())];
    return symbol.name.empty() ? std::nullopt : std::optional(symbol);
  }
  [[nodiscard]] bool empty() const {
    return std::all_of(symbols_.begin(), symbols_.end(),
                       [](const Symbol& symbol) { return symbol.name.empty(); });
  }

 private:
  std::vector<std::uint64_t> addresses_;
  std::vector<Symbol> symbols_;
};

// Of the whole code, and some around it.
std::vector<std::uint64_t> all_code() {
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t address = 0xf00; address < 0x2100; ++address) addresses.push_back(address);
  for (std::uint64_t address = 0x9000; address < 0x9020; ++address) addresses.push_back(address);
  return addresses;
}

const ElfFile& elf_of(const std::vector<TestSymbol>& symbols, std::uint32_t table_type = SHT_SYMTAB) {
  static std::deque<std::string> images;
  static std::deque<ElfFile> files;
  const std::string& bytes = images.emplace_back(make_elf(symbols, table_type));
  return files.emplace_back(ElfFile::parse(std::as_bytes(std::span(bytes))).value());
}

Found table_of(const std::vector<TestSymbol>& symbols, std::uint32_t table_type = SHT_SYMTAB) {
  return {elf_of(symbols, table_type), all_code()};
}

std::string name_at(const Found& found, std::uint64_t address) {
  const std::optional<Symbol> symbol = found.find(address);
  return symbol ? symbol->linker_name() : "";
}

TEST(SymbolTable, NamesOnlyWhatASymbolCovers) {
  const Found table = table_of({{"one", 0x1000, 0x10}, {"two", 0x1020, 0x10}});
  EXPECT_EQ(name_at(table, 0xfff), "");
  EXPECT_EQ(name_at(table, 0x1000), "one");
  EXPECT_EQ(name_at(table, 0x100f), "one");
  EXPECT_EQ(name_at(table, 0x1010), "");
  EXPECT_EQ(name_at(table, 0x102f), "two");
  EXPECT_EQ(name_at(table, 0x1030), "");
}

TEST(SymbolTable, LeavesOutDataUndefinedAndAbsoluteSymbols) {
  const Found table = table_of({{"data", 0x9000, 8, STT_OBJECT, STB_GLOBAL, 2},
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
  const Found table = table_of({{"assembly", 0x1000, 0, STT_NOTYPE, STB_LOCAL},
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
  const Found table = table_of(
      {{"$x", 0x1000, 0, STT_NOTYPE}, {".annobin_a", 0x1004, 0, STT_NOTYPE}, {"long", 0x1ff0, 0x100}});
  EXPECT_EQ(name_at(table, 0x1000), "");
  EXPECT_EQ(name_at(table, 0x1fff), "long");
  EXPECT_EQ(name_at(table, 0x2000), "");
}

TEST(SymbolTable, GivesOverlappingCodeToTheInnermostSymbol) {
  const Found table =
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

// One address at a time, the same symbols are found: those that were not asked for bound them all the same.
TEST(SymbolTable, AnAddressHasTheSameSymbolWithoutTheOthers) {
  const std::vector<TestSymbol> symbols = {{"outer", 0x1000, 0x100},
                                           {"inner", 0x1040, 0x10},
                                           {"crossing", 0x10f0, 0x20},
                                           {"label", 0x1048, 0, STT_NOTYPE, STB_LOCAL},
                                           {"open", 0x1200, 0, STT_NOTYPE, STB_LOCAL},
                                           {"open_alias", 0x1200, 0, STT_NOTYPE},
                                           {"late", 0x1280, 0x10},
                                           {"open_late", 0x12a0, 0, STT_NOTYPE},
                                           {"last", 0x1f00, 0, STT_NOTYPE}};
  const ElfFile& file = elf_of(symbols);
  const Found together = table_of(symbols);
  for (const std::uint64_t address : all_code()) {
    const auto one = Found(file, {address}).find(address);
    const auto other = together.find(address);
    ASSERT_EQ(one.has_value(), other.has_value()) << address;
    if (!one) continue;
    ASSERT_EQ(one->name, other->name) << address;
    ASSERT_EQ(one->start, other->start) << address;
    ASSERT_EQ(one->size, other->size) << address;
  }
  EXPECT_EQ(together.find(0x1210)->size, 0x80U);
  EXPECT_EQ(name_at(together, 0x1210), "open_alias");
}

TEST(SymbolTable, ASymbolBehindTheCodeIsNone) {
  EXPECT_TRUE(table_of({{"behind", 0x2000, 0x10}, {"before", 0xfff, 0x10}}).empty());
}

TEST(SymbolTable, AnUnsizedSymbolMayBeginWhereASizedOneEnds) {
  const Found table = table_of({{"sized", 0x1000, 0x10}, {"open", 0x1010, 0, STT_NOTYPE}});
  EXPECT_EQ(name_at(table, 0x100f), "sized");
  EXPECT_EQ(name_at(table, 0x1010), "open");
}

TEST(SymbolTable, UnsizedAliasesShareTheRoomUpToTheNext) {
  const Found table =
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
  const Found table(*file, {0x5008, 0x6008, 0x7008, 0x5028});
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
    auto elf = ElfFile::parse(region_.bytes());
    ASSERT_TRUE(elf.ok());
    elf_ = *std::move(elf);
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
  std::optional<ElfFile> elf_;
};

TEST_F(OwnSymbols, NamesItsOwnFunctions) {
  const std::uint64_t start = elf_address(&ddprof_symbol_test_function);
  const std::optional<Symbol> symbol = Found(*elf_, {start + 1}).find(start + 1);
  ASSERT_TRUE(symbol);
  EXPECT_EQ(symbol->name, "ddprof_symbol_test_function");
  EXPECT_EQ(symbol->start, start);
  EXPECT_GT(symbol->size, 1U);
}

TEST_F(OwnSymbols, EndsHandWrittenAssemblyAtTheNextSymbol) {
  const std::uint64_t start = elf_address(&ddprof_symbol_test_unsized);
  const Found table(*elf_, {start, start + 2, start + 3});
  EXPECT_EQ(name_at(table, start), "ddprof_symbol_test_unsized");
  EXPECT_EQ(name_at(table, start + 2), "ddprof_symbol_test_unsized");
  EXPECT_EQ(name_at(table, start + 3), "ddprof_symbol_test_after");
}

struct ClosePipe {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

TEST_F(OwnSymbols, AgreesWithNmOnEverySizedFunction) {
  if (std::system("command -v nm >/dev/null 2>&1") != 0) GTEST_SKIP() << "nm is not installed";
  const std::string program = std::string("/proc/") + std::to_string(getpid()) + "/exe";
  const std::unique_ptr<std::FILE, ClosePipe> nm(popen(("nm --defined-only -S " + program).c_str(), "r"));
  ASSERT_TRUE(nm);
  const auto code = elf_->find_section(".text");
  ASSERT_TRUE(code);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> functions;  // start and last byte
  std::vector<std::uint64_t> addresses;
  char line[65536];
  while (std::fgets(line, sizeof line, nm.get()) != nullptr) {
    unsigned long long start = 0, size = 0;
    char type = 0;
    if (std::sscanf(line, "%llx %llx %c", &start, &size, &type) != 3 || std::strchr("tTwWi", type) == nullptr)
      continue;
    if (start - code->vaddr >= code->size) continue;  // "weak" may also be a thread's variable
    functions.emplace_back(start, start + size - 1);
    addresses.insert(addresses.end(), {start, start + size - 1});
  }
  const Found table(*elf_, addresses);
  for (const auto& [start, last] : functions) {
    ASSERT_TRUE(table.find(start)) << start;
    EXPECT_EQ(table.find(start)->start, start);
    EXPECT_TRUE(table.find(last)) << last;
  }
  EXPECT_GT(functions.size(), 100U);
  EXPECT_EQ(name_at(table, elf_address(&ddprof_symbol_test_function)), "ddprof_symbol_test_function");
}

TEST_F(OwnSymbols, NamesLinkageTableStubs) {
  std::size_t stubs = 0;
  for (const char* name : {".plt", ".plt.sec"}) {
    const auto section = elf_->find_section(name);
    for (std::uint64_t at = 0; section && at < section->size; at += 16) {
      const Found one(*elf_, {section->vaddr + at});
      stubs += name_at(one, section->vaddr + at).ends_with("@plt") ? 1 : 0;
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
  const auto stubs = elf.find_section(".plt");
  if (!stubs) GTEST_SKIP() << info.dli_fname << " has no linkage table";
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t at = 0; at < stubs->size; at += 16) addresses.push_back(stubs->vaddr + at);
  const Found table(elf, addresses);
  std::set<std::string> names;
  for (const std::uint64_t address : addresses) names.insert(name_at(table, address));
  EXPECT_TRUE(names.contains("strnlen@plt") || names.contains("strchr@plt") || names.contains("memcpy@plt"));
}

// Stubs of a library find their slots by ebx, those of a program by the address itself.
TEST(SymbolTable, NamesStubsOfI386) {
  const std::string folder = DDPROF_SOURCE_DIR "/tests/fuzz/";
  const auto names_of = [&](const std::string& path) {
    const UniqueFd fd(::open((folder + path).c_str(), O_RDONLY | O_CLOEXEC));
    const MappedRegion region = MappedRegion::map_file(fd.get()).value();
    const ElfFile elf = ElfFile::parse(region.bytes()).value();
    const auto stubs = elf.find_section(".plt");
    std::vector<std::uint64_t> addresses;
    for (std::uint64_t at = 16; at < stubs->size; at += 16) addresses.push_back(stubs->vaddr + at);
    const std::size_t stub_count = addresses.size();
    std::vector<std::string> functions;
    elf.for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
      if (symbol.type != STT_FUNC || symbol.size == 0) return;
      addresses.push_back(symbol.value);
      functions.emplace_back(symbol.name);
    });
    const Found table(elf, addresses);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string name = name_at(table, addresses[i]);
      if (i < stub_count)
        names.push_back(name);
      else
        EXPECT_EQ(name, functions[i - stub_count]);
    }
    return names;
  };
  EXPECT_EQ(names_of("elf_file_fuzz/i386_library"), (std::vector<std::string>{"twice@plt", "imported@plt"}));
  EXPECT_EQ(names_of("symbol_table_fuzz/i386_program"), (std::vector<std::string>{"twice@plt"}));
}

TEST(SymbolTable, RefusesMoreSymbolsThanMemoryHolds) {
  const std::vector<TestSymbol> symbols(20000, {"function", 0x1000, 0x10});
  const ElfFile& file = elf_of(symbols);
  const std::vector<std::uint64_t> address = {0x1008};
  EXPECT_EQ(find_symbols(file, address, {std::uint64_t{1} << 20U}).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(find_symbols(file, address).ok());
  const std::vector<std::uint64_t> elsewhere = {0x1800};
  EXPECT_TRUE(find_symbols(file, elsewhere, {std::uint64_t{1} << 20U}).ok()) << "none of them is kept";
}

TEST(SymbolTable, CutsNamesThatDoNotEnd) {
  const Found table = table_of({{std::string(10000, 'x'), 0x1000, 0x10}});
  EXPECT_EQ(name_at(table, 0x1000).size(), ElfFile::kMaxSymbolNameBytes);
}

}  // namespace
}  // namespace ddprof
