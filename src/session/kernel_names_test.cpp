#include "session/kernel_names.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ddprof {
namespace {

class KernelNamesTest : public testing::Test {
 protected:
  KernelNamesTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_kallsyms("original");
  }
  ~KernelNamesTest() override { std::filesystem::remove_all(folder_); }

  void write_kallsyms(const std::string& name) const {
    std::ofstream(kallsyms_) << "ffffffff81000000 T " << name << "\nffffffff81000100 T next\n"
                             << "ffffffffc0001000 T " << name << "_of_module\t[module]\n";
  }
  std::string name_at(std::uint64_t address) const {
    KernelNames names(cache_, kallsyms_);
    const auto symbol = names.find(address);
    return symbol ? std::string(symbol->name) : "";
  }

  std::string folder_ = testing::TempDir() + fmt::format("kernel_names_test_{}", ::getpid());
  std::string cache_ = folder_ + "/new/ddprof";
  std::string kallsyms_ = folder_ + "/kallsyms";
  std::string image_ = cache_ + "/kernel-symbols";
};

TEST_F(KernelNamesTest, CachesTheKernelsSymbolsForTheNextRun) {
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  write_kallsyms("changed");
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  struct stat status {};
  ASSERT_EQ(::stat(image_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(KernelNamesTest, AsksTheKernelForModulesEveryTime) {
  EXPECT_EQ(name_at(0xffffffffc0001010), "original_of_module");
  write_kallsyms("changed");
  EXPECT_EQ(name_at(0xffffffffc0001010), "changed_of_module");
}

TEST_F(KernelNamesTest, DoesNotBelieveADamagedFile) {
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  const auto size = std::filesystem::file_size(image_);
  for (std::uintmax_t shorter = 0; shorter < size; shorter += 7) {
    std::filesystem::resize_file(image_, shorter);
    EXPECT_EQ(name_at(0xffffffff81000010), "original");  // and it is written anew
    EXPECT_EQ(std::filesystem::file_size(image_), size);
  }
  // Wild offsets give no name, or a wrong one in bounds; the address sanitizer watches.
  std::fstream(image_, std::ios::in | std::ios::out)
      .seekp(72 + 8)
      .write("\xff\xff\xff\x7f\xff\xff\xff\x7f", 8);
  EXPECT_EQ(name_at(0xffffffff81000010), "");
}

TEST_F(KernelNamesTest, CachesNothingInAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  std::filesystem::create_directories(cache_);
  ASSERT_EQ(::chown(cache_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  EXPECT_FALSE(std::filesystem::exists(image_));
}

TEST_F(KernelNamesTest, MakesNoFolderInTheHomeOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
}

TEST_F(KernelNamesTest, WorksWithoutAFolder) {
  cache_ = "";
  EXPECT_EQ(name_at(0xffffffff81000010), "original");
  EXPECT_EQ(name_at(0x1000), "");
}

}  // namespace
}  // namespace ddprof
