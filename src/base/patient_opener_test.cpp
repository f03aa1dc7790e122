#include "base/patient_opener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForever = std::chrono::minutes(5);
constexpr std::uint32_t kAlice = 1001;
constexpr std::uint32_t kBob = 1002;

// Without a mount table, so that a folder stands for a file system.
FileRequest request_of(std::string path, std::uint32_t user = kAlice) {
  FileRequest request{.path = std::move(path)};
  request.mounts = "/nonexistent";
  request.user = user;
  return request;
}

// A file system whose /dead/ part hangs until the test lets it go.
class HangingFiles {
 public:
  ~HangingFiles() { gate_.set_value(); }
  PatientOpener::Open open() {
    return [released = released_, calls = calls_](const FileRequest& request) -> Result<ForeignFile> {
      ++*calls;
      if (request.path.starts_with("/dead/")) released.wait();
      return ForeignFile{.fd = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))};
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
  EXPECT_TRUE(opener.open({.path = folder.path("file")}).ok());
  EXPECT_TRUE(opener.open({.path = "/file", .root = folder.path()}).ok());
  EXPECT_EQ(opener.open({.path = folder.path("absent")}).error().code, ErrorCode::not_found);
  EXPECT_TRUE(opener.hung_places().empty());
}

TEST(PatientOpener, GivesUpOnAFileSystemThatHangsAndLeavesItAlone) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  EXPECT_EQ(opener.open(request_of("/dead/one")).error().code, ErrorCode::exhausted);
  ASSERT_EQ(opener.hung_places(), (std::vector<PatientOpener::HungPlace>{{"/dead/", kAlice}}));
  EXPECT_EQ(opener.open(request_of("/dead/two")).error().code, ErrorCode::exhausted);
  EXPECT_LE(files.calls(), 1);  // none when the thread for it did not even start in that time
}

TEST(PatientOpener, GoesOnWithOtherFileSystems) {
  HangingFiles files;
  PatientOpener opener(milliseconds(200), files.open());
  EXPECT_FALSE(opener.open(request_of("/dead/one")).ok());
  // With a patience that a busy machine cannot exceed.
  PatientOpener patient(kForever, files.open());
  EXPECT_TRUE(patient.open(request_of("/deadly/one")).ok());
}

TEST(PatientOpener, HangsForAUserABoundedNumberOfTimes) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file")).ok());
  EXPECT_EQ(opener.hung_places().size(), PatientOpener::kMaxHungCallsOfUser);
}

TEST(PatientOpener, GoesOnForOtherUsersOnTheSameFileSystem) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1000), files.open());
  for (std::size_t i = 0; i < PatientOpener::kMaxHungCallsOfUser; ++i)
    EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file")).ok());
  EXPECT_EQ(opener.open(request_of("/alive/file")).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(opener.open(request_of("/alive/file", kBob)).ok());
  EXPECT_TRUE(opener.open(request_of("/alive/file", 0)).ok());
}

TEST(PatientOpener, HangsABoundedNumberOfTimes) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  for (std::uint32_t user = 1; user < 30; ++user)
    for (int i = 0; i < 8; ++i)
      EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file", user)));
  EXPECT_EQ(opener.hung_places().size(), PatientOpener::kMaxHungCalls);
}

TEST(PatientOpener, KnowsWhichMountAPathIsOnAndWhoAnswersForIt) {
  constexpr std::string_view table =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:50 / /net rw - nfs server:/ rw\n"
      "24 23 0:51 / /net/deeper rw shared:1 - nfs server:/deeper rw\n"
      "25 22 0:52 / /home/bob/mnt rw,nosuid - fuse.sshfs x rw,user_id=1002,group_id=1002\n"
      "26 22 0:53 / /mnt/pool rw,nosuid - fuse.mergerfs x rw,user_id=0,group_id=0\n"
      "broken\n";
  using Place = PatientOpener::HungPlace;
  EXPECT_EQ(place_of(request_of("/net/a/b"), table), (Place{"/net", kAlice}));
  EXPECT_EQ(place_of(request_of("/net/deeper/b"), table), (Place{"/net/deeper", kAlice}));
  EXPECT_EQ(place_of(request_of("/network/a"), table), (Place{"/network/", kAlice}));
  EXPECT_EQ(place_of(request_of("/usr/bin/x"), ""), (Place{"/usr/bin/", kAlice}));
  EXPECT_EQ(place_of(request_of("/home/bob/mnt/x", 0), table), (Place{"/home/bob/mnt", kBob}));
  EXPECT_EQ(place_of(request_of("/mnt/pool/x"), table), (Place{"/mnt/pool", kAlice}));
  FileRequest link = request_of("/net/map_files/1-2");
  link.links = FileRequest::Links::of_kernel;
  EXPECT_EQ(place_of(link, table), (Place{"/net/map_files/1-2", kAlice}));
  FileRequest inside = request_of("/net/a/b");
  inside.root = "/proc/7/root";
  EXPECT_EQ(place_of(inside, table), (Place{"/proc/7/root/net", kAlice}));
}

}  // namespace
}  // namespace ddprof
