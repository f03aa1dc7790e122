#include "process/foreign_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

const Pid kThisProcess{::getpid()};

Address address_of(const void* data) { return {reinterpret_cast<std::uint64_t>(data)}; }

// Memory that does not answer until it is let go.
struct Hanging {
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = true;
  std::atomic<int> reads = 0;

  std::size_t read(std::span<std::byte> into) {
    std::unique_lock lock(mutex);
    ++reads;
    changed.wait(lock, [this] { return !hangs; });
    std::memset(into.data(), 7, into.size());
    return into.size();
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    hangs = false;
    changed.notify_all();
  }
};

class ForeignMemoryTest : public testing::Test {
 protected:
  static ForeignMemory::Limits impatient() {
    return {.patience = 10ms, .longest_patience = 20ms, .waiting_per_second = 10'000ms};
  }
  ForeignMemory hanging(ForeignMemory::Limits limits = impatient()) {
    return ForeignMemory(
        limits, [hung = hung_](Pid, Address, std::span<std::byte> into) { return hung->read(into); });
  }

  std::shared_ptr<Hanging> hung_ = std::make_shared<Hanging>();
  std::array<std::byte, 16> bytes_{};
};

TEST_F(ForeignMemoryTest, ReadsMemory) {
  const std::string secret = "what was written";
  ForeignMemory memory;
  ASSERT_EQ(memory.read(kThisProcess, address_of(secret.data()), bytes_), bytes_.size());
  EXPECT_EQ(std::memcmp(bytes_.data(), secret.data(), bytes_.size()), 0);
  EXPECT_EQ(memory.read(kThisProcess, Address{0}, bytes_), 0U);
  EXPECT_EQ(memory.read(Pid{1 << 23}, address_of(secret.data()), bytes_), 0U);
}

TEST_F(ForeignMemoryTest, ReadsFilesOfProc) {
  ForeignMemory memory;
  EXPECT_EQ(memory.read_file(kThisProcess, "comm", 100).value_or(""), "process_test\n");
  EXPECT_FALSE(memory.read_file(kThisProcess, "nothing", 100).ok());
}

TEST_F(ForeignMemoryTest, LeavesAReadBehindThatHangs) {
  ForeignMemory memory = hanging();
  EXPECT_EQ(memory.read(kThisProcess, {}, bytes_), 0U);
  EXPECT_EQ(memory.hung(), 1U);
  EXPECT_EQ(memory.read(kThisProcess, {}, bytes_), 0U);  // at once: the process is given up
  EXPECT_EQ(hung_->reads, 1);
  hung_->let_go();
  while (memory.hung() > 0) std::this_thread::yield();
}

TEST_F(ForeignMemoryTest, BlocksTheUserForAWhile) {
  ForeignMemory memory = hanging();
  memory.read(kThisProcess, {}, bytes_);
  hung_->let_go();
  memory.forget(kThisProcess);
  EXPECT_EQ(memory.read(kThisProcess, {}, bytes_), 0U);
  EXPECT_EQ(memory.read(Pid{::getppid()}, {}, bytes_), 0U);
  EXPECT_EQ(hung_->reads, 1);
}

TEST_F(ForeignMemoryTest, ReadsStacksOfItsOwnUserWithoutTheHelper) {
  for (const bool is_own : {true, false}) {
    ForeignMemory::Limits limits;
    if (!is_own) limits.own_user.reset();
    std::thread::id reader;
    ForeignMemory memory(limits, [&](Pid, Address, std::span<std::byte> into) {
      reader = std::this_thread::get_id();
      return into.size();
    });
    EXPECT_EQ(memory.read_stack(kThisProcess, {}, bytes_), bytes_.size());
    EXPECT_EQ(reader == std::this_thread::get_id(), is_own);
    EXPECT_EQ(memory.read(kThisProcess, {}, bytes_), bytes_.size());
    EXPECT_NE(reader, std::this_thread::get_id());
  }
}

TEST_F(ForeignMemoryTest, ReadsSoMuchOfOneUserInASecond) {
  ForeignMemory::Limits limits;
  limits.bytes_per_second = 100;
  limits.own_user.reset();
  hung_->let_go();
  ForeignMemory memory = hanging(limits);
  std::size_t sum = 0;
  for (int i = 0; i < 20; ++i) sum += memory.read(kThisProcess, {}, bytes_);
  EXPECT_GE(sum, 96U);
  EXPECT_LE(sum, 192U);  // a second may have begun meanwhile
  limits.own_user = ::geteuid();
  ForeignMemory own = hanging(limits);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(own.read(kThisProcess, {}, bytes_), bytes_.size());
}

// A process of a user without rights, that waits.
class ForeignProcess {
 public:
  ForeignProcess() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      [[maybe_unused]] const bool is_ready = ::setuid(kNobody) == 0 && ::write(ends[1], "x", 1) == 1;
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "it is that user's now";
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ForeignProcess(const ForeignProcess&) = delete;
  ForeignProcess& operator=(const ForeignProcess&) = delete;
  ~ForeignProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] Pid pid() const { return Pid{pid_}; }

 private:
  static constexpr uid_t kNobody = 65534;
  pid_t pid_ = 0;
};

TEST_F(ForeignMemoryTest, AUserWhoseMemoryHangsDoesNotBlockOthersUntilTooManyHang) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has processes of other users";
  const ForeignProcess other;
  for (const std::size_t most : {1U, 2U}) {
    ForeignMemory::Limits limits = impatient();
    limits.hung = 1;
    limits.hung_of_all = most;
    const auto is_read = std::make_shared<std::atomic<bool>>(false);
    ForeignMemory memory(limits, [hung = hung_, is_read](Pid pid, Address, std::span<std::byte> into) {
      if (pid == kThisProcess) return hung->read(into);
      *is_read = true;
      return into.size();
    });
    EXPECT_EQ(memory.read(kThisProcess, {}, bytes_), 0U);
    ASSERT_EQ(memory.hung(), 1U);
    memory.read(other.pid(), {}, bytes_);
    while (most == 2 && !*is_read) std::this_thread::yield();  // however late its thread gets a CPU
    EXPECT_EQ(*is_read, most == 2);
  }
  hung_->let_go();
}

}  // namespace
}  // namespace ddprof
