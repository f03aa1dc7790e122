#include "unwind/oracle/table_oracle.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

void expect_agreement(std::span<const std::byte> image, const std::string& name) {
  RuleDictionary dictionary;
  const auto report = compare_with_libdw(image, dictionary, 10000);
  ASSERT_TRUE(report.ok()) << name;
  EXPECT_GT(report->compared, 0U) << name;
  EXPECT_EQ(report->mismatches, 0U) << name << ": "
                                    << (report->details.empty() ? "" : report->details.front());
  EXPECT_EQ(report->bad_entries, 0U) << name;
  EXPECT_LE(report->unsupported_rows, report->rows / 1000 + 4) << name;
}

void expect_file_agreement(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd.is_open()) << path;
  const auto region = MappedRegion::map_file(fd.get());
  ASSERT_TRUE(region.ok()) << path;
  expect_agreement(region->bytes(), path);
}

// Where the loader finds a library; empty when this machine does not have it.
std::string path_of_library(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map));
  return map->l_name;
}

TEST(TableOracle, AgreesWithLibdwOnThisProgram) { expect_file_agreement("/proc/self/exe"); }

TEST(TableOracle, AgreesWithLibdwOnTheLibrariesOfThisProgram) {
  for (const char* name :
       {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}) {
    const std::string path = path_of_library(name);
    ASSERT_FALSE(path.empty()) << name;
    expect_file_agreement(path);
  }
}

TEST(TableOracle, AgreesWithLibdwOnFilesOfI386) {
  expect_file_agreement(DDPROF_SOURCE_DIR "/tests/fuzz/elf_file_fuzz/i386_library");
  for (const char* path : {"/usr/lib32/libc.so.6", "/usr/lib32/libstdc++.so.6"}) {
    if (::access(path, R_OK) == 0) expect_file_agreement(path);  // libc6-i386, lib32stdc++6
  }
}

TEST(TableOracle, AgreesWithLibdwOnAGoProgram) {
  const std::string path = DDPROF_SOURCE_DIR "/build/dev/puppets/go_shares";
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "no Go compiler, or the puppets are not built";
  expect_file_agreement(path);
}

TEST(TableOracle, AgreesWithLibdwOnHandWrittenAssembly) {
  bool any = false;
  for (const char* name : {"libcrypto.so.3", "libgcrypt.so.20"}) {
    const std::string path = path_of_library(name);
    if (path.empty()) continue;
    any = true;
    expect_file_agreement(path);
  }
  if (!any) GTEST_SKIP() << "neither libcrypto nor libgcrypt is installed";
}

TEST(TableOracle, AgreesWithLibdwOnTheVdso) {
  const auto* vdso = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  if (vdso == nullptr) GTEST_SKIP() << "the kernel maps no vdso";
  ElfW(Ehdr) header;
  std::memcpy(&header, vdso, sizeof header);
  // The section headers are last in a vdso.
  expect_agreement({vdso, header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize}, "vdso");
}

}  // namespace
}  // namespace ddprof
