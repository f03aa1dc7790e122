#include "process/jit_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ddprof {
namespace {

const Pid kSelf{static_cast<Pid>(::getpid())};

TEST(JitFile, KnowsTheNamesOfJitdumps) {
  EXPECT_TRUE(is_jit_dump_path("/home/me/.debug/jit/jit-1234.dump"));
  EXPECT_TRUE(is_jit_dump_path("jit-0.dump"));
  for (const char* path : {"/tmp/jit-.dump", "/tmp/jit-12x.dump", "/tmp/ajit-1.dump", "/tmp/jit-1.dump2",
                           "/tmp/jit-1.dump/x", "/jit-.dum", "jit-dump", ""}) {
    EXPECT_FALSE(is_jit_dump_path(path)) << path;
  }
}

class PerfMapFile : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  PatientOpener opener{std::chrono::minutes(5)};
  std::string path_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
};

TEST_F(PerfMapFile, IsReadWhereTheProcessWritesIt) {
  EXPECT_EQ(JitFile::open_perf_map(opener, kSelf).error().code, ErrorCode::not_found);
  std::ofstream(path_) << "1000 10 function\n";
  const auto file = JitFile::open_perf_map(opener, kSelf);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->read_all(100).value(), "1000 10 function\n");
  EXPECT_EQ(file->read_all(10).error().code, ErrorCode::exhausted);
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_EQ(file->size().value(), 21U);
  std::array<std::byte, 100> bytes;
  EXPECT_EQ(file->read(17, bytes).value(), 4U);
}

TEST_F(PerfMapFile, IsRefusedWhenItIsALinkAFifoOrSomebodyElses) {
  ASSERT_EQ(::symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_EQ(JitFile::open_perf_map(opener, kSelf).error().code, ErrorCode::unsupported);
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(JitFile::open_perf_map(opener, kSelf).error().code, ErrorCode::unsupported);
  ::unlink(path_.c_str());
  std::ofstream(path_) << "1000 10 function\n";
  if (::chown(path_.c_str(), 12345, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "files can be given away by root only";
  const auto file = JitFile::open_perf_map(opener, kSelf);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::permission_denied);
  EXPECT_NE(file.error().message.find("belongs to user 12345"), std::string::npos) << file.error().message;
}

TEST(JitDumpFile, StaysReadableWhenItsNameIsGone) {
  PatientOpener opener(std::chrono::minutes(5));
  const std::string path = testing::TempDir() + "jit-" + std::to_string(::getpid()) + ".dump";
  std::ofstream(path) << "dump";
  const auto absolute = std::filesystem::absolute(path).string();
  const auto file = JitFile::open_dump(opener, {kSelf, {0x1000}, {0x2000}, {.path = absolute}});
  ASSERT_TRUE(file.ok()) << file.error().message;
  ::unlink(path.c_str());
  EXPECT_EQ(file->read_all(100).value(), "dump");
  EXPECT_EQ(JitFile::open_dump(opener, {kSelf, {0x1000}, {0x2000}, {.path = absolute}}).error().code,
            ErrorCode::not_found);
}

}  // namespace
}  // namespace ddprof
