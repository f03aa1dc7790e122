#include "elf/go_table.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ddprof {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

template <typename T>
void put(Bytes& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// A program of sections, one behind the other; each is mapped where it lies in the file.
class Program {
 public:
  // Returns its address.
  std::uint64_t add(const std::string& name, const Bytes& data, std::uint32_t type = SHT_PROGBITS) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<std::uint32_t>(names_.size());
    section.sh_type = type;
    section.sh_flags = SHF_ALLOC;
    section.sh_addr = section.sh_offset = data_.size();
    section.sh_size = data.size();
    names_ += name + '\0';
    data_.insert(data_.end(), data.begin(), data.end());
    data_.resize((data_.size() + 63) / 64 * 64);
    sections_.push_back(section);
    return section.sh_addr;
  }

  Bytes bytes() {
    Bytes names;
    for (const char letter : names_ + ".names" + '\0') names.push_back(static_cast<std::byte>(letter));
    add(".names", names, SHT_STRTAB);
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_filesz = segment.p_memsz = data_.size();
    put(data_, sizeof(Elf64_Ehdr), segment);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    header.e_shoff = data_.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(sections_.size());
    header.e_shstrndx = static_cast<std::uint16_t>(sections_.size() - 1);
    put(data_, 0, header);
    for (const Elf64_Shdr& section : sections_) append(data_, section);
    return data_;
  }

 private:
  Bytes data_ = Bytes(128);
  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_ = {Elf64_Shdr{}};
};

constexpr std::uint32_t kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr std::uint64_t kCode = 0x4000, kNamesOffset = 72, kModuleBytes = 328;

// A table of two functions.
Bytes go_bytes(std::uint64_t code = kCode, std::uint32_t magic = kGo120) {
  Bytes bytes;
  append(bytes, magic);
  append(bytes, 0x08010000U);
  for (const std::uint64_t field : {std::uint64_t{2}, std::uint64_t{0}, code, kNamesOffset, std::uint64_t{80},
                                    std::uint64_t{88}, std::uint64_t{96}, std::uint64_t{104}})
    append(bytes, field);
  bytes.resize(104);
  for (const std::uint32_t entry : {0U, 20U, 0x100U, 20U, 0x200U}) append(bytes, entry);
  return bytes;
}

Bytes behind(std::size_t zeros, const Bytes& bytes) {
  Bytes made(zeros);
  made.insert(made.end(), bytes.begin(), bytes.end());
  return made;
}

std::optional<GoTable> find_in(const Bytes& bytes) {
  const auto file = ElfFile::parse(bytes);
  EXPECT_TRUE(file.ok());
  return GoTable::find(*file);
}

std::optional<GoTable> find_alone(const Bytes& bytes) {
  Program program;
  program.add(".gopclntab", bytes);
  static Bytes file;  // the table points into it
  file = program.bytes();
  return find_in(file);
}

TEST(GoTable, IsFoundInItsOwnSection) {
  const auto found = find_alone(go_bytes());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code_start, kCode);
  EXPECT_EQ(found->function_count, 2U);
  EXPECT_EQ(found->step, 1);
  EXPECT_TRUE(found->has_start_lines);
  EXPECT_EQ(found->names_address, found->address + kNamesOffset);
  EXPECT_EQ(found->units.size() + 8, found->names.size());
  EXPECT_EQ(found->begin_of(0), kCode);
  EXPECT_EQ(found->begin_of(1), kCode + 0x100);
  EXPECT_FALSE(find_alone(go_bytes(kCode, kGo118))->has_start_lines);
}

TEST(GoTable, IsNotTakenFromWhatIsNone) {
  EXPECT_FALSE(find_alone(go_bytes(kCode, 0xfffffffb)));
  Bytes changed = go_bytes();
  put(changed, 4, 0x04010000U);  // pointers of four bytes
  EXPECT_FALSE(find_alone(changed));
  changed = go_bytes();
  put(changed, 8, std::uint64_t{3});  // more functions than there are
  EXPECT_FALSE(find_alone(changed));
  changed = go_bytes();
  put(changed, 64, std::uint64_t{1} << 40U);  // functions outside of it
  EXPECT_FALSE(find_alone(changed));
  changed = go_bytes();
  changed.resize(64);
  EXPECT_FALSE(find_alone(changed));
  EXPECT_FALSE(find_alone(go_bytes(0)));  // nothing tells where the code is
}

TEST(GoTable, IsSearchedForInAGoProgramOfAnotherLinker) {
  for (const char* section : {".data.rel.ro", ".rodata"}) {
    for (const std::size_t at : {0U, 32U, 96U}) {
      Program program;
      program.add(section, behind(at, go_bytes()));
      Bytes file = program.bytes();
      EXPECT_FALSE(find_in(file)) << "not a Go program";
      Program go;
      go.add(".go.buildinfo", Bytes(8));
      const std::uint64_t start = go.add(section, behind(at, go_bytes()));
      file = go.bytes();
      const auto found = find_in(file);
      ASSERT_TRUE(found) << section << " " << at;
      EXPECT_EQ(found->address, start + at);
    }
  }
}

// The runtime's data of the program, with what it says at these offsets.
Bytes module_bytes(std::initializer_list<std::pair<std::size_t, std::uint64_t>> fields) {
  Bytes bytes(kModuleBytes);
  for (const auto& [at, value] : fields) put(bytes, at, value);
  return bytes;
}

TEST(GoTable, FindsItsCodeAndDataThroughTheRuntime) {
  Program program;
  const std::uint64_t at = program.add(".gopclntab", go_bytes(0));
  const std::uint64_t data = program.add(".rodata", Bytes(16, std::byte{7}));
  const Bytes other =
      module_bytes({{0, at}, {8, at}, {176, 0x9999}});  // points to the table, but has other names
  const Bytes right = module_bytes({{0, at}, {8, at + kNamesOffset}, {176, 0x7000}, {320, data}});
  Bytes both = other;
  both.insert(both.end(), right.begin(), right.end());
  program.add(".noptrdata", both);
  const Bytes file = program.bytes();
  const auto found = find_in(file);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code_start, 0x7000U);
  const auto function_data = found->find_function_data(*ElfFile::parse(file));
  ASSERT_FALSE(function_data.empty());
  EXPECT_EQ(function_data[0], std::byte{7});
}

TEST(GoTable, FindsThemThroughWhatTheLoaderWillWrite) {
  Program program;
  const std::uint64_t at = program.add(".gopclntab", go_bytes(0));
  const std::uint64_t data = program.add(".data", Bytes(2 * kModuleBytes));
  const std::uint64_t runtime = data + kModuleBytes;
  Bytes relocations;
  const auto relocate = [&](std::uint64_t address, std::uint64_t target,
                            std::uint32_t type = R_X86_64_RELATIVE) {
    append(relocations, Elf64_Rela{address, ELF64_R_INFO(0, type), static_cast<std::int64_t>(target)});
  };
  relocate(data, at);  // names do not follow
  relocate(runtime, at);
  relocate(runtime + 8, at + kNamesOffset);
  relocate(runtime + 176, 0x6000, R_X86_64_64);
  relocate(runtime + 176, 0x7000);
  program.add(".rela.dyn", relocations, SHT_RELA);
  const Bytes file = program.bytes();
  const auto found = find_in(file);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code_start, 0x7000U);
}

std::vector<std::pair<std::uint64_t, std::int32_t>> steps_of(std::initializer_list<unsigned> bytes,
                                                             std::uint64_t end, std::uint32_t offset = 1) {
  Bytes sequences = {std::byte{0xff}};
  for (const unsigned byte : bytes) sequences.push_back(static_cast<std::byte>(byte));
  GoTable of;
  of.step = 4;
  of.sequences = sequences;
  std::vector<std::pair<std::uint64_t, std::int32_t>> steps;
  std::uint64_t begin = 0x100;
  for (GoSequence sequence(of, offset, begin, end); sequence.next(); begin = sequence.end()) {
    EXPECT_EQ(sequence.begin(), begin);
    steps.emplace_back(sequence.end(), sequence.value());
  }
  return steps;
}

using Steps = std::vector<std::pair<std::uint64_t, std::int32_t>>;

TEST(GoSequence, ChangesItsValueAlongTheCode) {
  EXPECT_EQ(steps_of({2, 1, 48, 2, 47, 1, 0}, 0x200), (Steps{{0x104, 0}, {0x10c, 24}, {0x110, 0}}));
  EXPECT_EQ(steps_of({0, 1, 2, 1, 0}, 0x200),
            (Steps{{0x104, -1}, {0x108, 0}}));                           // a zero at first is a change
  EXPECT_EQ(steps_of({0x82, 0x01, 1, 0}, 0x200), (Steps{{0x104, 64}}));  // of two bytes
}

TEST(GoSequence, EndsWithTheCodeTheBytesAndWhatIsImpossible) {
  EXPECT_EQ(steps_of({2, 1, 2, 1, 2, 1}, 0x108), (Steps{{0x104, 0}, {0x108, 1}}));
  EXPECT_EQ(steps_of({2, 1, 2}, 0x200), (Steps{{0x104, 0}}));
  EXPECT_EQ(steps_of({2, 1, 2, 0, 2, 1}, 0x200), (Steps{{0x104, 0}}));        // no steps
  EXPECT_EQ(steps_of({1, 1}, 0x200), Steps{});                                // below -1
  EXPECT_EQ(steps_of({0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}, 0x200), Steps{});  // a number too long
  EXPECT_EQ(steps_of({0x80, 0x80, 0x80, 0x80, 0x10, 1}, 0x200), (Steps{{0x104, 0x7fffffff}}));
  EXPECT_EQ(steps_of({0x82, 0x80, 0x80, 0x80, 0x10, 1}, 0x200), Steps{});  // above all
  EXPECT_EQ(steps_of({2, 1}, 0x200, 0), Steps{});
  EXPECT_EQ(steps_of({2, 1}, 0x200, 3), Steps{});
}

// Three functions, the last of no bytes; descriptions behind their places.
std::optional<GoFunctions> functions_of(std::uint32_t magic, std::uint8_t flags) {
  Bytes bytes = go_bytes(kCode, magic);
  bytes.resize(104);
  put(bytes, 8, std::uint64_t{3});
  constexpr std::uint32_t kDescription = 28;
  for (const std::uint32_t entry : {0U, kDescription, 0x100U, kDescription, 0x200U, kDescription, 0x200U})
    append(bytes, entry);
  Bytes description(48);
  put(description, 16, std::uint32_t{0x55});
  put(description, magic == kGo120 ? 41 : 37, flags);
  bytes.insert(bytes.end(), description.begin(), description.end());
  Program program;
  program.add(".gopclntab", bytes);
  static Bytes file;  // the functions point into it
  file = program.bytes();
  return GoFunctions::find(*ElfFile::parse(file));
}

TEST(GoFunctions, SayWhereTheyAreAndWhatTheyDoToTheStack) {
  for (const std::uint32_t magic : {kGo118, kGo120}) {
    const auto functions = functions_of(magic, 1);
    ASSERT_TRUE(functions);
    EXPECT_EQ(functions->size(), 3U);
    const auto first = functions->function(0);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->begin, kCode);
    EXPECT_EQ(first->end, kCode + 0x100);
    EXPECT_EQ(first->stack_sizes, 0x55U);
    EXPECT_TRUE(first->is_outermost);
    EXPECT_FALSE(first->moves_stack);
    EXPECT_FALSE(functions->function(2)) << "it has no code";
    const auto moving = functions_of(magic, 2)->function(1);
    ASSERT_TRUE(moving);
    EXPECT_EQ(moving->begin, kCode + 0x100);
    EXPECT_FALSE(moving->is_outermost);
    EXPECT_TRUE(moving->moves_stack);
  }
}

TEST(GoFunctions, WhoseDescriptionIsOutsideOfTheTableAreNone) {
  Program program;
  program.add(".gopclntab", go_bytes());  // their descriptions begin at its last word
  const Bytes file = program.bytes();
  const auto functions = GoFunctions::find(*ElfFile::parse(file));
  ASSERT_TRUE(functions);
  EXPECT_FALSE(functions->function(0));
  EXPECT_FALSE(functions->function(1'000'000));
}

}  // namespace
}  // namespace ddprof
