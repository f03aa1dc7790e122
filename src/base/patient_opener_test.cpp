#include "base/patient_opener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>
#include <memory>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForever = std::chrono::minutes(5);

UniqueFd some_fd() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// A file system whose /dead/ part hangs until the test lets it go.
class HangingFiles {
 public:
  ~HangingFiles() { gate_.set_value(); }
  PatientOpener::Open open() {
    return [released = released_, calls = calls_](const std::string&,
                                                  const std::string& path) -> Result<UniqueFd> {
      ++*calls;
      if (path.starts_with("/dead/")) released.wait();
      return some_fd();
    };
  }
  [[nodiscard]] int calls() const { return *calls_; }

 private:
  std::promise<void> gate_;
  std::shared_future<void> released_ = gate_.get_future().share();
  std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

TEST(PatientOpener, OpensAFileThatAnswers) {
  const ScratchFolder folder;
  folder.write("file", "content");
  PatientOpener opener(kForever);
  EXPECT_TRUE(opener.open("", folder.path("file")).ok());
  EXPECT_TRUE(opener.open(folder.path(), "/file").ok());
  EXPECT_EQ(opener.open("", folder.path("absent")).error().code, ErrorCode::not_found);
  EXPECT_TRUE(opener.hung_places().empty());
}

TEST(PatientOpener, OpensNothingButRegularFiles) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  PatientOpener opener(kForever);
  EXPECT_FALSE(opener.open("", folder.path("fifo")).ok());
  EXPECT_FALSE(opener.open("", "/dev/null").ok());
  EXPECT_FALSE(opener.open("", folder.path()).ok());
}

TEST(PatientOpener, StaysBelowTheRootWhereverLinksLead) {
  const ScratchFolder folder;
  folder.write("secret", "of the host");
  folder.write("root/etc/real", "of the container");
  folder.run("ln -s /etc/real root/absolute && ln -s ../../secret root/climbing && ln -s '" +
             folder.path("secret") + "' root/outside");
  const std::string root = folder.path("root");
  EXPECT_TRUE(open_regular_file(root, "/absolute").ok());
  EXPECT_FALSE(open_regular_file(root, "/climbing").ok());
  EXPECT_FALSE(open_regular_file(root, "/outside").ok());
  EXPECT_FALSE(open_regular_file(root, "/../secret").ok());
}

TEST(PatientOpener, GivesUpOnAFileSystemThatHangsAndLeavesItAlone) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  EXPECT_EQ(opener.open("", "/dead/one").error().code, ErrorCode::exhausted);
  ASSERT_EQ(opener.hung_places(), std::vector<std::string>{"/dead/"});
  EXPECT_EQ(opener.open("", "/dead/two").error().code, ErrorCode::exhausted);
  EXPECT_LE(files.calls(), 1);  // none when the thread for it did not even start in that time
}

TEST(PatientOpener, GoesOnWithOtherFileSystems) {
  HangingFiles files;
  PatientOpener opener(milliseconds(200), files.open());
  EXPECT_FALSE(opener.open("", "/dead/one").ok());
  // With a patience that a busy machine cannot exceed.
  PatientOpener patient(kForever, files.open());
  EXPECT_TRUE(patient.open("", "/deadly/one").ok());
}

TEST(PatientOpener, HangsABoundedNumberOfTimes) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(opener.open("", "/dead/" + std::to_string(i) + "/file").ok());
  EXPECT_EQ(opener.hung_places().size(), PatientOpener::kMaxHungCalls);
}

TEST(PatientOpener, KnowsWhichMountAPathIsOn) {
  constexpr std::string_view table =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:50 / /net rw - nfs server:/ rw\n"
      "24 23 0:51 / /net/deeper rw shared:1 - nfs server:/deeper rw\n"
      "broken\n";
  EXPECT_EQ(mount_of("", "/net/a/b", table), "/net");
  EXPECT_EQ(mount_of("", "/net/deeper/b", table), "/net/deeper");
  EXPECT_EQ(mount_of("/proc/7/root", "/net/a/b", table), "/proc/7/root/net");
  EXPECT_EQ(mount_of("", "/network/a", table), "/network/");
  EXPECT_EQ(mount_of("", "/usr/bin/x", ""), "/usr/bin/");
}

}  // namespace
}  // namespace ddprof
