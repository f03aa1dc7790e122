#include "runtime/profiling.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "runtime/in_child_fixture.hpp"

namespace ddprof {
namespace {

// A process that computes until it is killed.
class BusyProcess {
 public:
  BusyProcess() : pid_(::fork()) {
    while (pid_ == 0) asm volatile("");
  }
  ~BusyProcess() { end(); }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

  [[nodiscard]] Pid pid() const { return Pid{pid_}; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST(ChargedTime, OfAProcessThatIsGoneIsFoundByTheReadingOfAnEarlierWorker) {
  BusyProcess busy;
  auto charged = ChargedTime::create(busy.pid());
  ASSERT_TRUE(charged.ok());
  // The collector counts twice of what the kernel charges.
  const std::string first = in_child([&] {
    std::int64_t time = 0;
    for (std::int64_t now = 0; now < 30'000'000; now = charged->at(time)) time = 2 * now;
    return std::to_string(time / 2);
  });
  const std::int64_t read = std::stoll(first);
  ASSERT_GT(read, 0);
  busy.end();
  const std::string second = in_child([&] { return std::to_string(charged->at(2 * read + 2'000'000)); });
  EXPECT_GE(std::stoll(second), read + 1'000'000) << "the last reading of the first worker may be newer";
  EXPECT_LT(std::stoll(second), 2 * read);
}

}  // namespace
}  // namespace ddprof
