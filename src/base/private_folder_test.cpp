#include "base/private_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace ddprof {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() { std::filesystem::create_directories(home_); }
  ~PrivateFolderTest() override { std::filesystem::remove_all(home_); }

  static std::string text_of(const PrivateFolder& folder, const std::string& name) {
    auto region = folder.read(name);
    if (!region) return "(none)";
    return {reinterpret_cast<const char*>(region->data()), region->size()};
  }

  std::string home_ = testing::TempDir() + fmt::format("private_folder_test_{}", ::getpid());
  std::string path_ = home_ + "/.cache/ddprof";
};

TEST_F(PrivateFolderTest, KeepsWhatWasWrittenForThisUserAlone) {
  auto folder = PrivateFolder::open(path_);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->write("a", bytes_of("first")).ok());
  ASSERT_TRUE(folder->write("a", bytes_of("second")).ok());
  EXPECT_EQ(text_of(*folder, "a"), "second");
  struct stat status {};
  ASSERT_EQ(::stat((path_ + "/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(PrivateFolderTest, AReaderKeepsTheOldFile) {
  auto folder = PrivateFolder::open(path_);
  ASSERT_TRUE(folder->write("a", bytes_of("first")).ok());
  auto before = folder->read("a");
  ASSERT_TRUE(folder->write("a", bytes_of("second")).ok());
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(before->data()), before->size()), "first");
}

TEST_F(PrivateFolderTest, HasFoldersInside) {
  auto folder = PrivateFolder::open(path_);
  auto inner = folder->folder("names");
  ASSERT_TRUE(inner.ok());
  ASSERT_TRUE(inner->write("a", bytes_of("inside")).ok());
  EXPECT_EQ(text_of(*folder->folder("names"), "a"), "inside");
}

TEST_F(PrivateFolderTest, FollowsNoLinks) {
  auto folder = PrivateFolder::open(path_);
  std::ofstream(home_ + "/elsewhere") << "somebody's";
  std::filesystem::create_symlink(home_ + "/elsewhere", path_ + "/a");
  EXPECT_EQ(text_of(*folder, "a"), "(none)");
}

TEST_F(PrivateFolderTest, PutsNothingIntoAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  constexpr uid_t kOtherUser = 61001;
  ASSERT_EQ(::chown(home_.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_FALSE(PrivateFolder::open(path_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(home_));
  // Nor through a link of theirs.
  std::filesystem::create_directories(home_ + "/ours/ddprof");
  ASSERT_EQ(::chown((home_ + "/ours").c_str(), 0, 0), 0);
  std::filesystem::permissions(home_ + "/ours/ddprof", std::filesystem::perms(0755));
  std::filesystem::create_symlink("ours", home_ + "/.cache");
  ASSERT_EQ(::lchown((home_ + "/.cache").c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_FALSE(PrivateFolder::open(path_).ok());
  struct stat status {};
  ASSERT_EQ(::stat((home_ + "/ours/ddprof").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755U);
}

TEST_F(PrivateFolderTest, IsForThisUserAlone) {
  std::filesystem::create_directories(path_);
  std::filesystem::permissions(path_, std::filesystem::perms(0755));
  ASSERT_TRUE(PrivateFolder::open(path_).ok());
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(PrivateFolderTest, TrimsWhatWasWrittenLongestAgo) {
  auto folder = PrivateFolder::open(path_);
  const std::string content(1000, 'x');
  for (const char* name : {"old", "middle", "new"}) ASSERT_TRUE(folder->write(name, bytes_of(content)).ok());
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(path_ + "/old", now - std::chrono::hours(2));
  std::filesystem::last_write_time(path_ + "/middle", now - std::chrono::hours(1));
  folder->trim(2500);
  EXPECT_EQ(text_of(*folder, "old"), "(none)");
  EXPECT_EQ(text_of(*folder, "middle"), content);
  EXPECT_EQ(text_of(*folder, "new"), content);
}

}  // namespace
}  // namespace ddprof
