#include "process/file_registry.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ddprof {
namespace {

// Answers with our own program, as a file of the user that the test says.
class FilesOf final : public FileProvider {
 public:
  Result<CodeImage> open(const MappedFile& file) override {
    ++opened;
    const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    return CodeImage{.path = file.identity.path,
                     .region = TRY(MappedRegion::map_file(fd.get())),
                     .root = root,
                     .owner = owner};
  }
  Result<JitFile> open_jit_dump(const MappedFile&) override {
    return make_error(ErrorCode::not_found, "not in this test");
  }

  std::optional<std::uint32_t> owner;
  std::shared_ptr<const TargetRoot> root;
  int opened = 0;
};

// A process of another user, which waits.
class ProcessOf {
 public:
  explicit ProcessOf(std::uint32_t user) : pid_(::fork()) {
    if (pid_ == 0) {
      if (::setresuid(user, user, user) != 0) ::_exit(1);
      while (true) ::pause();
    }
    while (find_user_of(pid()) != user && ::waitpid(pid_, nullptr, WNOHANG) == 0) ::usleep(1000);
  }
  ~ProcessOf() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] Pid pid() const { return Pid{pid_}; }

 private:
  pid_t pid_;
};

constexpr std::uint32_t kHostile = 61001;
constexpr std::uint32_t kVictim = 61002;

class FileRegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may become other users";
    const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    const auto image = MappedRegion::map_file(fd.get());
    build_id_ = ElfFile::parse(image->bytes())->build_id();
    if (build_id_.empty()) GTEST_SKIP() << "this program has no build id";
  }
  FileId map(const ProcessOf& process, const std::string& path) {
    return files_.find_or_open(process.pid(), {0x1000}, {0x2000}, {.path = path, .build_id = build_id_});
  }

  FilesOf provider_;
  FileRegistry files_{provider_};
  BuildId build_id_;
};

TEST_F(FileRegistryTest, SharesWhatRootWroteBetweenAllUsers) {
  const ProcessOf hostile(kHostile), victim(kVictim);
  provider_.owner = 0;
  const FileId id = map(hostile, "/usr/lib/libc.so");
  EXPECT_EQ(map(victim, "/lib/libc.so"), id);
  EXPECT_EQ(provider_.opened, 1);
  EXPECT_EQ(files_.file(id)->cache_key(), build_id_.hex());
}

TEST_F(FileRegistryTest, ACopiedBuildIdSaysNothingOfAnotherUsersCode) {
  const ProcessOf hostile(kHostile), victim(kVictim), root(0);
  provider_.owner = kHostile;
  const FileId theirs = map(hostile, "/tmp/false");
  EXPECT_EQ(map(hostile, "/tmp/copy"), theirs);  // of the same user
  EXPECT_EQ(provider_.opened, 1);
  provider_.owner = kVictim;
  const FileId right = map(victim, "/srv/right");
  EXPECT_NE(right, theirs);
  provider_.owner = 0;
  const FileId roots = map(root, "/usr/bin/service");
  EXPECT_NE(roots, theirs);
  EXPECT_NE(roots, right);
  EXPECT_EQ(files_.file(theirs)->cache_key(), build_id_.hex() + "-61001");
}

TEST_F(FileRegistryTest, AFileOfAThirdUserIsOneByItsPathToo) {
  const ProcessOf root(0), victim(kVictim);
  provider_.owner = kHostile;
  const FileId theirs = map(root, "/home/hostile/tool");
  EXPECT_EQ(map(root, "/home/hostile/tool"), theirs);
  EXPECT_EQ(provider_.opened, 1);
  provider_.owner = 0;
  EXPECT_NE(map(root, "/usr/bin/service"), theirs);
  EXPECT_NE(map(victim, "/home/hostile/tool"), theirs);  // root's is known to all by now
}

TEST_F(FileRegistryTest, WhatLiesBelowAnotherRootIsSharedByOneUserOnly) {
  const ProcessOf hostile(kHostile), victim(kVictim);
  provider_.owner = 0;
  provider_.root = std::make_shared<const TargetRoot>(UniqueFd());
  const FileId theirs = map(hostile, "/lib/libc.so");
  EXPECT_EQ(map(hostile, "/usr/lib/libc.so"), theirs);
  EXPECT_NE(map(victim, "/lib/libc.so"), theirs);
}

TEST_F(FileRegistryTest, AFileThatManyCouldWriteIsNotCached) {
  const ProcessOf hostile(kHostile), victim(kVictim);
  const FileId id = map(hostile, "/tmp/shared");
  EXPECT_EQ(files_.file(id)->cache_key(), "");
  EXPECT_NE(map(victim, "/tmp/shared"), id);
  EXPECT_NE(map(hostile, "/tmp/other"), id);
}

TEST(FileRegistry, ReadsTheVdsoFromOurOwnMemory) {
  if (::getauxval(AT_SYSINFO_EHDR) == 0) GTEST_SKIP() << "the kernel maps no vdso";
  FilesOf provider;
  FileRegistry files(provider);
  const FileId id = files.vdso();
  EXPECT_EQ(files.vdso(), id);
  EXPECT_EQ(files.file(id)->kind, CodeFile::Kind::vdso);
  ASSERT_TRUE(files.file(id)->elf);
  EXPECT_GT(files.file(id)->elf->section_count(), 1U);
  EXPECT_EQ(provider.opened, 0);
}

}  // namespace
}  // namespace ddprof
