#include "process/file_registry.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <iterator>

namespace ddprof {
namespace {

// Answers with our own program, as a file of the user that the test says.
class FilesOf final : public FileProvider {
 public:
  Open prepare(const MappedFile& file) override {
    ++opened;
    return [file, root = root, owner = owner]() -> Result<CodeImage> {
      const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
      return CodeImage{.path = file.identity.path,
                       .region = TRY(MappedRegion::map_file(fd.get())),
                       .root = root,
                       .owner = owner};
    };
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

// As FilesOf, when the test lets it.
class LateFiles final : public FileProvider {
 public:
  LateFiles() { files_.owner = ::geteuid(); }
  Open prepare(const MappedFile& file) override {
    return [open = files_.prepare(file), opened = opened_]() -> Result<CodeImage> {
      opened.wait();
      return open();
    };
  }
  void let_go() { gate_.set_value(); }

 private:
  FilesOf files_;
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
};

class LateFilesTest : public testing::Test {
 protected:
  LateFiles provider_;
  FileThreads threads_{{.most_waiting = Nanoseconds(0)}};
  FileRegistry files_{provider_, &threads_};
  const Pid self_{::getpid()};

  FileId map(const std::string& path) {
    return files_.find_or_open(self_, {0x1000}, {0x2000}, {.path = path, .inode = 1});
  }
};

TEST_F(LateFilesTest, AFileHasAnIdBeforeItIsOpen) {
  const FileId id = map("/late");
  EXPECT_EQ(files_.file(id)->kind, CodeFile::Kind::opening);
  EXPECT_EQ(map("/late"), id);
  const CodeMapping mapping{.start = {0x5000}, .end = {0x6000}, .file_offset = 0x2000, .file = id};
  EXPECT_EQ(files_.resolved(mapping).bias, 0x3000U);
  AddressSpace space;
  space.map(mapping);
  files_.wait_until_open(space, 1);
  EXPECT_EQ(files_.file(id)->kind, CodeFile::Kind::opening);
  provider_.let_go();
  files_.take_opened(std::chrono::minutes(1));
  EXPECT_EQ(files_.file(id)->kind, CodeFile::Kind::elf);
  EXPECT_EQ(map("/late"), files_.resolved(id));
}

TEST_F(LateFilesTest, FramesMoveFromOffsetsToElfAddresses) {
  const FileId id = map("/late");
  const Frame before{.file = id, .address = 0x40};
  EXPECT_EQ(files_.resolved(before), before);
  provider_.let_go();
  files_.take_opened(std::chrono::minutes(1));
  const CodeFile& file = *files_.file(id);
  for (const auto& segment : file.elf->segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const Frame frame = files_.resolved(Frame{.file = id, .address = segment.offset + 16});
    EXPECT_EQ(frame.address, segment.vaddr + 16);
    EXPECT_EQ(frame.file, files_.resolved(id));
    EXPECT_NE(frame.file, id);
    EXPECT_EQ(files_.resolved(frame), frame);
    const CodeMapping mapping{
        .start = {0x10000}, .end = {0x20000}, .file_offset = segment.offset, .file = id};
    EXPECT_EQ(files_.resolved(mapping).bias, 0x10000 - segment.vaddr);
  }
}

TEST_F(LateFilesTest, TwoNamesOfOneFileBecomeOne) {
  const FileId one = map("/late"), other = map("/link");
  EXPECT_NE(one, other);
  provider_.let_go();
  files_.take_opened(std::chrono::minutes(1));
  if (files_.file(one)->build_id.empty()) GTEST_SKIP() << "this program has no build id";
  EXPECT_EQ(files_.resolved(one), files_.resolved(other));
  // What is mapped stays known, by whichever name.
  for (std::uint32_t period = 0; period < 2 * FileRegistry::kKeptPeriods; ++period)
    files_.forget_unused({one});
  EXPECT_NE(files_.file(one), nullptr);
  EXPECT_EQ(files_.file(other), nullptr);
}

TEST(FileRegistry, ReadsTheVdsoOf32BitProcessesFromOneOfEachUser) {
  FilesOf provider;
  FileRegistry files(provider);
  std::ifstream library(DDPROF_SOURCE_DIR "/tests/fuzz/elf_file_fuzz/i386_library", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(library), {});
  const auto bytes = std::as_bytes(std::span(text));
  int reads = 0;
  const auto read = [&] { return ++reads, std::vector<std::byte>(bytes.begin(), bytes.end()); };
  const auto fail = [&] { return ++reads, std::vector<std::byte>(); };
  const FileId unread = files.vdso_32(1000, fail);
  EXPECT_EQ(files.file(unread)->kind, CodeFile::Kind::unopened);
  EXPECT_EQ(files.vdso_32(1000, fail), unread);
  const FileId known = files.vdso_32(1000, read);
  EXPECT_NE(known, unread);
  ASSERT_EQ(files.file(known)->kind, CodeFile::Kind::vdso);
  EXPECT_TRUE(files.file(known)->elf->is_32_bit());
  EXPECT_EQ(reads, 3);
  EXPECT_EQ(files.vdso_32(1000, read), known);
  EXPECT_EQ(reads, 3);
  EXPECT_NE(files.vdso_32(1001, read), known) << "another user may have changed it";
  EXPECT_NE(files.vdso_32(std::nullopt, read), known);
  // It is forgotten as files are.
  for (std::uint32_t period = 0; period <= FileRegistry::kKeptPeriods; ++period) files.forget_unused({});
  EXPECT_EQ(files.file(known), nullptr);
  EXPECT_EQ(files.file(files.vdso_32(1000, read))->kind, CodeFile::Kind::vdso);
}

TEST(FileRegistry, TakesNo64BitImageForTheVdsoOf32BitProcesses) {
  FilesOf provider;
  FileRegistry files(provider);
  const std::vector<std::byte> noise(8192, std::byte{0x5a});
  EXPECT_EQ(files.file(files.vdso_32(1000, [&] { return noise; }))->kind, CodeFile::Kind::unopened);
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
