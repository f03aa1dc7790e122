#include "export/spool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanoseconds kSomeTime{1'714'564'800'000'000'000};

UploadRequest numbered(std::uint64_t sequence, std::string body = "body") {
  return {.sequence = sequence,
          .start = kSomeTime + std::chrono::seconds(sequence),
          .end = kSomeTime + std::chrono::seconds(sequence + 1),
          .query = {},
          .content_type = "text/plain",
          .headers = {},
          .body = std::move(body)};
}

std::uint64_t file_bytes(const UploadRequest& request) { return write_request(request).size(); }

class SpoolTest : public testing::Test {
 protected:
  Spool open(SpoolLimits limits = {}) const {
    auto spool = Spool::open(path_, limits);
    EXPECT_TRUE(spool.ok()) << spool.error().message;
    return std::move(spool).value();
  }
  static std::string add(Spool& spool, const UploadRequest& request) {
    auto name = spool.add(request);
    EXPECT_TRUE(name.ok()) << name.error().message;
    return std::move(name).value_or("");
  }
  // What is taken when all is, in its order.
  static std::vector<std::uint64_t> deliver_all(Spool& spool) {
    std::vector<std::uint64_t> taken;
    std::ignore = spool.deliver([&](const std::string&, const UploadRequest& request) {
      taken.push_back(request.sequence);
      return Spool::Fate::delivered;
    });
    return taken;
  }
  [[nodiscard]] std::vector<fs::path> request_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path_))
      if (entry.path().extension() == ".parcel") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path("spool");
};

TEST_F(SpoolTest, DeliversInTheOrderOfAdding) {
  Spool spool = open();
  EXPECT_TRUE(spool.is_empty());
  for (std::uint64_t i = 0; i < 5; ++i) add(spool, numbered(i));
  EXPECT_FALSE(spool.is_empty());
  EXPECT_EQ(spool.state().requests, 5U);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 5; ++i) bytes += file_bytes(numbered(i));
  EXPECT_EQ(spool.state().bytes, bytes);
  EXPECT_THAT(deliver_all(spool), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(deliver_all(spool), IsEmpty());
  EXPECT_TRUE(spool.is_empty());
  EXPECT_EQ(spool.state().dropped, 0U);
}

TEST_F(SpoolTest, IsLeftToTheNextRun) {
  {
    Spool earlier = open();
    for (std::uint64_t i = 0; i < 3; ++i) add(earlier, numbered(i));
  }
  Spool later = open();
  add(later, numbered(0));
  EXPECT_THAT(deliver_all(later), ElementsAre(0, 1, 2, 0));
}

TEST_F(SpoolTest, StopsAtWhatIsKeptAndGoesOnThere) {
  Spool spool = open();
  for (std::uint64_t i = 0; i < 4; ++i) add(spool, numbered(i));
  int attempts = 0;
  std::ignore = spool.deliver([&](const std::string&, const UploadRequest& request) {
    ++attempts;
    return request.sequence < 2 ? Spool::Fate::delivered : Spool::Fate::waits;
  });
  EXPECT_EQ(attempts, 3);
  EXPECT_THAT(deliver_all(spool), ElementsAre(2, 3));
}

TEST_F(SpoolTest, CountsWhatIsRefusedAndGoesPastWhatIsPassedOver) {
  Spool spool = open();
  const std::string first = add(spool, numbered(0));
  for (std::uint64_t i = 1; i < 4; ++i) add(spool, numbered(i));
  std::ignore = spool.deliver([](const std::string&, const UploadRequest& request) {
    if (request.sequence == 0) return Spool::Fate::passed_over;
    return request.sequence == 1 ? Spool::Fate::refused : Spool::Fate::delivered;
  });
  EXPECT_EQ(spool.state().dropped, 1U);
  EXPECT_EQ(spool.state().requests, 1U);
  spool.drop(first);
  spool.drop(first);
  EXPECT_EQ(spool.state().dropped, 2U);
  EXPECT_TRUE(spool.is_empty());
}

TEST_F(SpoolTest, NeverHoldsMoreThanItsBoundAndDropsTheOldest) {
  const std::uint64_t bound = 3 * file_bytes(numbered(0)) + 50;  // checksums have more or fewer digits
  Spool spool = open({.bytes = bound, .age = std::chrono::hours(24)});
  for (std::uint64_t i = 0; i < 8; ++i) {
    add(spool, numbered(i));
    EXPECT_LE(spool.state().bytes, bound);
  }
  EXPECT_EQ(spool.state().dropped, 5U);
  EXPECT_THAT(deliver_all(spool), ElementsAre(5, 6, 7));
}

TEST_F(SpoolTest, RefusesWhatAloneIsTooLarge) {
  Spool spool = open({.bytes = 1000, .age = std::chrono::hours(24)});
  add(spool, numbered(0));
  const auto added = spool.add(numbered(1, std::string(1000, 'x')));
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, HasSubstr("more than " + path_ + " may hold"));
  EXPECT_THAT(deliver_all(spool), ElementsAre(0));
}

TEST_F(SpoolTest, DropsWhatIsTooOld) {
  Spool spool = open({.bytes = 1 << 20, .age = std::chrono::hours(1)});
  for (std::uint64_t i = 0; i < 3; ++i) add(spool, numbered(i));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(request_files()[0], now + std::chrono::hours(5));  // says a clock that was wrong
  fs::last_write_time(request_files()[1], now - std::chrono::minutes(61));
  EXPECT_THAT(deliver_all(spool), ElementsAre(0, 2));
  EXPECT_EQ(spool.state().dropped, 1U);
}

TEST_F(SpoolTest, KeepsTheOrderWhenTheClockIsSetBack) {
  Spool spool = open();
  add(spool, numbered(0));
  // As if that had been written with a clock that was a hundred years ahead.
  const std::string future = "00004900000000000000-00000001.parcel";
  fs::rename(request_files()[0], path_ + "/" + future);
  add(spool, numbered(1));
  add(spool, numbered(2));
  EXPECT_THAT(deliver_all(spool), ElementsAre(0, 1, 2));
}

TEST_F(SpoolTest, SkipsAndCountsWhatWasCutAtAnyByte) {
  const std::string whole = write_request(numbered(1));
  Spool spool = open();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    add(spool, numbered(0));
    std::ofstream(request_files()[0], std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    add(spool, numbered(2));
    ASSERT_THAT(deliver_all(spool), ElementsAre(2)) << size;
  }
  EXPECT_EQ(spool.state().dropped, whole.size());
  EXPECT_TRUE(spool.is_empty());
}

TEST_F(SpoolTest, IsForThisUserAlone) {
  Spool spool = open();
  add(spool, numbered(0));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(request_files()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(SpoolTest, UsesNoFolderAndNoFileOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  {
    Spool spool = open();
    add(spool, numbered(0));
    add(spool, numbered(1));
    ASSERT_EQ(::chown(request_files()[0].c_str(), 65534, 65534), 0);
    EXPECT_EQ(spool.state().requests, 1U);
    EXPECT_THAT(deliver_all(spool), ElementsAre(1));
    EXPECT_TRUE(spool.is_empty());
  }
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Spool::open(path_, {}).ok());
}

TEST_F(SpoolTest, LooksAtNothingElseInItsFolder) {
  Spool spool = open();
  folder_.write("spool/README", "not a parcel");
  fs::create_directory(path_ + "/folder.parcel");
  fs::create_symlink("/etc/passwd", path_ + "/0-link.parcel");
  EXPECT_TRUE(spool.is_empty());
  EXPECT_THAT(deliver_all(spool), IsEmpty());
  EXPECT_TRUE(folder_.has("spool/README"));
}

TEST_F(SpoolTest, ForgetsWhatAWriterThatCrashedHasLeft) {
  Spool spool = open({.bytes = 2 * file_bytes(numbered(0)) + 50, .age = std::chrono::hours(1)});
  const std::string left = path_ + "/.00000000000000000001-1.parcel.77";
  std::ofstream(left) << std::string(100, 'x');
  add(spool, numbered(0));
  EXPECT_TRUE(fs::exists(left)) << "somebody may be writing it";
  EXPECT_EQ(spool.state().requests, 1U);
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::minutes(20));
  add(spool, numbered(1));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_THAT(deliver_all(spool), ElementsAre(0, 1));
  EXPECT_EQ(spool.state().dropped, 0U);
}

TEST_F(SpoolTest, ComesBackWhenSomebodyHasRemovedItsFolder) {
  Spool spool = open();
  add(spool, numbered(0));
  fs::remove_all(path_);
  EXPECT_TRUE(spool.is_empty());
  add(spool, numbered(1));
  EXPECT_THAT(deliver_all(spool), ElementsAre(1));
}

TEST_F(SpoolTest, DropsWhatIsTooOldInTheSpoolsBesideIt) {
  Spool spool = open({.bytes = 1 << 20, .age = std::chrono::hours(1)});
  auto beside = Spool::open(folder_.path("beside"), {});
  ASSERT_TRUE(beside.ok());
  const std::string old = add(*beside, numbered(0));
  add(*beside, numbered(1));
  folder_.write("not_a_spool/some.parcel", "somebody's");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(folder_.path("beside/" + old), long_ago);
  fs::last_write_time(folder_.path("not_a_spool/some.parcel"), long_ago);
  spool.drop_outdated_beside();
  EXPECT_EQ(spool.state().dropped, 1U);
  EXPECT_THAT(deliver_all(*beside), ElementsAre(1));
  EXPECT_TRUE(folder_.has("not_a_spool/some.parcel"));
}

// Makes every read() of this process fail as a broken disk does.
void break_reading() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), const_cast<sock_filter*>(program)};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(9);
}

TEST_F(SpoolTest, KeepsWhatADiskCannotReadNow) {
  Spool spool = open();
  add(spool, numbered(0));
  const pid_t child = ::fork();
  if (child == 0) {
    break_reading();
    const auto delivered =
        spool.deliver([](const std::string&, const UploadRequest&) { return Spool::Fate::delivered; });
    const bool is_said = !delivered && delivered.error().message.ends_with("Input/output error");
    ::_exit(is_said && spool.state().requests == 1 && spool.state().dropped == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(deliver_all(spool), ElementsAre(0));
}

TEST_F(SpoolTest, OneAtATimeDelivers) {
  Spool spool = open();
  add(spool, numbered(0));
  Spool other = open();
  std::ignore = spool.deliver([&](const std::string&, const UploadRequest&) {
    EXPECT_THAT(deliver_all(other), IsEmpty());
    add(other, numbered(1));
    return Spool::Fate::delivered;
  });
  EXPECT_THAT(deliver_all(other), ElementsAre(1));
}

TEST_F(SpoolTest, ARequestMayBeRemovedUnderItsReader) {
  Spool spool = open();
  add(spool, numbered(0));
  add(spool, numbered(1));
  std::vector<std::uint64_t> taken;
  std::ignore = spool.deliver([&](const std::string&, const UploadRequest& request) {
    taken.push_back(request.sequence);
    for (const fs::path& file : request_files()) fs::remove(file);  // another process makes room
    return Spool::Fate::refused;
  });
  EXPECT_THAT(taken, ElementsAre(0));
  EXPECT_EQ(spool.state().dropped, 0U) << "by this process";
}

// A run that adds its requests and now and then delivers: what it takes goes as lines into a pipe.
void run_sharer(const std::string& path, char run, std::uint64_t bound, int output) {
  auto spool = Spool::open(path, {.bytes = bound, .age = std::chrono::hours(24)});
  if (!spool) ::_exit(1);
  constexpr std::uint64_t kRequests = 60;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    if (!spool->add(numbered(i, std::string(1, run)))) ::_exit(2);
    if (spool->state().bytes > bound) ::_exit(3);
    if (i % 4 == 3)
      std::ignore = spool->deliver([&](const std::string&, const UploadRequest& request) {
        const std::string line = fmt::format("{} {}\n", request.body, request.sequence);
        return ::write(output, line.data(), line.size()) > 0 ? Spool::Fate::delivered : Spool::Fate::waits;
      });
  }
  ::_exit(0);
}

class SharedSpool : public SpoolTest {
 protected:
  // Of each run, what was delivered, in its order; by two processes, and one after them.
  std::map<std::string, std::vector<std::uint64_t>> share(std::uint64_t bound) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    std::vector<pid_t> children;
    for (const char run : {'a', 'b', 'c'}) {
      children.push_back(::fork());
      if (children.back() == 0) run_sharer(path_, run, bound, ends[1]);
    }
    ::close(ends[1]);
    std::map<std::string, std::vector<std::uint64_t>> taken;
    std::FILE* lines = ::fdopen(ends[0], "r");
    std::array<char, 8> run{};
    for (std::uint64_t sequence = 0; std::fscanf(lines, "%7s %lu\n", run.data(), &sequence) == 2;)
      taken[run.data()].push_back(sequence);
    std::fclose(lines);
    for (const pid_t child : children) {
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    Spool rest = open({.bytes = bound, .age = std::chrono::hours(24)});
    std::ignore = rest.deliver([&](const std::string&, const UploadRequest& request) {
      taken[request.body].push_back(request.sequence);
      return Spool::Fate::delivered;
    });
    return taken;
  }
};

TEST_F(SharedSpool, DeliversEverythingOnceAndInTheOrderOfEachRun) {
  std::vector<std::uint64_t> all(60);
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto taken = share(100 << 20);
  EXPECT_EQ(taken.size(), 3U);
  for (const auto& [run, sequences] : taken) EXPECT_EQ(sequences, all) << run;
}

TEST_F(SharedSpool, KeepsItsBoundAndDeliversNothingTwice) {
  for (const auto& [run, sequences] : share(5 * file_bytes(numbered(10, "a")))) {
    EXPECT_TRUE(std::adjacent_find(sequences.begin(), sequences.end(), std::greater_equal<>()) ==
                sequences.end())
        << run << ": " << testing::PrintToString(sequences);
  }
}

TEST_F(SpoolTest, HoldsExactlyItsBound) {
  const std::uint64_t bound = file_bytes(numbered(0)) + file_bytes(numbered(1));
  Spool spool = open({.bytes = bound, .age = std::chrono::hours(24)});
  add(spool, numbered(0));
  add(spool, numbered(1));
  EXPECT_EQ(spool.state().bytes, bound);
  EXPECT_EQ(spool.state().dropped, 0U);

  const UploadRequest whole = numbered(2, std::string(2000, 'x'));
  Spool other = open({.bytes = file_bytes(whole), .age = std::chrono::hours(24)});
  add(other, whole);
  EXPECT_THAT(deliver_all(other), ElementsAre(2));
}

}  // namespace
}  // namespace ddprof
