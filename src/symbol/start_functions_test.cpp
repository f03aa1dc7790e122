#include "symbol/start_functions.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace ddprof {
namespace {

constexpr std::uint64_t kCodeAddress = 0x401000;
using Bytes = std::vector<unsigned char>;

// An ELF image with this code at its entry.
std::string program_of(const Bytes& code, std::uint16_t machine = EM_X86_64) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  header.e_entry = kCodeAddress;
  header.e_phoff = header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_vaddr = kCodeAddress;
  segment.p_filesz = segment.p_memsz = code.size();
  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  image.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  return image.append(reinterpret_cast<const char*>(code.data()), code.size());
}

// What the function is called that begins at an address of a program with this code at its entry.
std::string name_at(std::uint64_t address, const Bytes& code, std::uint16_t machine = EM_X86_64) {
  const std::string image = program_of(code, machine);
  const ElfFile file = ElfFile::parse(std::as_bytes(std::span(image))).value();
  return std::string(StartFunctions(file, "program").name_of(file, address, address + 0x20));
}

// xor %ebp,%ebp; lea 0x100(%rip),%rdi; call *0x20(%rip)
const Bytes kPositionIndependent = {0x31, 0xed, 0x48, 0x8d, 0x3d, 0x00, 0x01, 0,
                                    0,    0xff, 0x15, 0x20, 0,    0,    0};
constexpr std::uint64_t kItsMain = kCodeAddress + 9 + 0x100;

TEST(StartFunctions, MainIsWhatTheStartOfAProgramPassesOn) {
  EXPECT_EQ(name_at(kItsMain, kPositionIndependent), "main");
  EXPECT_EQ(name_at(kCodeAddress, kPositionIndependent), "_start");
  EXPECT_EQ(name_at(kItsMain + 1, kPositionIndependent), "");
}

TEST(StartFunctions, MainOfAStaticProgramIsAnAddress) {
  // endbr64; xor %ebp,%ebp; mov $0x402000,%rdi; addr32 call
  const Bytes code = {0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xed, 0x48, 0xc7, 0xc7, 0x00,
                      0x20, 0x40, 0x00, 0x67, 0xe8, 0,    0,    0,    0};
  EXPECT_EQ(name_at(0x402000, code), "main");
  EXPECT_EQ(name_at(kCodeAddress, code), "_start");
}

TEST(StartFunctions, CodeThatStartsOtherwiseSaysNothing) {
  Bytes code = kPositionIndependent;
  code[0] = 0x33;  // the frame pointer is left alone
  EXPECT_EQ(name_at(kItsMain, code), "");
  EXPECT_EQ(name_at(kCodeAddress, code), "");
  code = kPositionIndependent;
  code[9] = 0x90;  // no call
  EXPECT_EQ(name_at(kItsMain, code), "");
  code = kPositionIndependent;
  code[4] = 0x35;  // another argument
  EXPECT_EQ(name_at(kItsMain, code), "");
  for (std::size_t size = 0; size < 10; ++size) {
    EXPECT_EQ(name_at(kItsMain, Bytes(kPositionIndependent.begin(),
                                      kPositionIndependent.begin() + static_cast<std::ptrdiff_t>(size))),
              "")
        << size;
  }
  EXPECT_EQ(name_at(kItsMain, kPositionIndependent, EM_AARCH64), "");
}

TEST(StartFunctions, OnlyTheLibraryOfThreadsStartsThreads) {
  // mov $273,%eax; syscall; mov $60,%eax; syscall
  const Bytes code = {0xb8, 0x11, 0x01, 0, 0, 0x0f, 0x05, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05};
  const std::string image = program_of(code);
  const ElfFile file = ElfFile::parse(std::as_bytes(std::span(image))).value();
  EXPECT_EQ(StartFunctions(file, "libc.so.6").name_of(file, kCodeAddress, kCodeAddress + code.size()), "")
      << "it does not export pthread_create";
}

}  // namespace
}  // namespace ddprof
