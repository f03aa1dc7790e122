#include "process/proc_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace ddprof {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// State, parent, fourteen more, the number of threads.
std::string stat_of(std::string_view name, char state, int parent, int threads) {
  return fmt::format("7 ({}) {} {} 5 5 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 {} 0 100 4096\n", name, state,
                     parent, threads);
}

TEST(ProcessList, ReadsAProcessWhateverItsName) {
  for (const char* name : {"nginx", "a) R 1 (b", "", "x y\nz"}) {
    const auto process = parse_process_stat(stat_of(name, 'S', 3, 42));
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->pid, Pid{7});
    EXPECT_EQ(process->parent, Pid{3});
    EXPECT_EQ(process->name, name);
    EXPECT_EQ(process->threads, 42U);
    EXPECT_FALSE(process->has_ended());
  }
  EXPECT_TRUE(parse_process_stat(stat_of("x", 'Z', 3, 1))->has_ended());
  // The first thread has ended, others have not.
  EXPECT_FALSE(parse_process_stat(stat_of("x", 'Z', 3, 2))->has_ended());
}

TEST(ProcessList, IsNotLedAstrayByOtherText) {
  for (const char* text :
       {"", "7", "7 (x", "7 (x)", "7 (x) ", "x (y) S 1", "7 (x) S 1 2 3", ")(", ") (", "7 (x) S"})
    EXPECT_FALSE(parse_process_stat(text)) << text;
}

TEST(ProcessList, HasTheCallerAndItsParent) {
  const auto processes = list_processes();
  const auto self = std::find_if(processes.begin(), processes.end(), [](const RunningProcess& process) {
    return process.pid == Pid{::getpid()};
  });
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, Pid{::getppid()});
  EXPECT_GE(self->threads, 1U);
  EXPECT_FALSE(read_process(0));
}

std::vector<Pid> family_of(std::vector<Pid> roots, Pid except = {}) {
  std::vector<RunningProcess> processes;
  const auto add = [&](int pid, int parent) {
    processes.push_back({.pid = Pid{pid}, .parent = Pid{parent}, .name = "x", .threads = 1});
  };
  add(30, 12);  // /proc has no order once numbers are used again
  add(1, 0);
  add(10, 1);
  add(11, 10);
  add(12, 10);
  add(20, 1);
  add(21, 20);
  processes.push_back({.pid = Pid{22}, .parent = Pid{20}, .threads = 1, .is_zombie = true});
  std::vector<Pid> found;
  for (const RunningProcess& process : with_descendants(roots, processes, except))
    found.push_back(process.pid);
  return found;
}

TEST(ProcessList, FindsDescendantsParentsFirst) {
  EXPECT_THAT(family_of({Pid{10}}), ElementsAre(Pid{10}, Pid{11}, Pid{12}, Pid{30}));
  EXPECT_THAT(family_of({Pid{20}}), ElementsAre(Pid{20}, Pid{21}));  // without what has ended
  EXPECT_THAT(family_of({Pid{12}, Pid{10}, Pid{12}}), ElementsAre(Pid{12}, Pid{10}, Pid{30}, Pid{11}));
  EXPECT_THAT(family_of({Pid{99}, Pid{21}}), ElementsAre(Pid{21}));
  EXPECT_THAT(family_of({}), IsEmpty());
}

TEST(ProcessList, LeavesOutTheOneWhoAsksUnlessItIsNamed) {
  EXPECT_THAT(family_of({Pid{10}}, Pid{12}), ElementsAre(Pid{10}, Pid{11}));
  EXPECT_THAT(family_of({Pid{12}}, Pid{12}), ElementsAre(Pid{12}, Pid{30}));
}

TEST(ProcessList, DescribesAProcessForATerminal) {
  EXPECT_EQ(describe_process(Pid{7}, "nginx"), "7 (nginx)");
  EXPECT_EQ(describe_process(Pid{7}, "a\033[2J"), "7 (a[2J)");
  EXPECT_EQ(describe_process(Pid{7}, ""), "7");
}

using ::testing::Contains;
using ::testing::IsEmpty;

TEST(ThreadList, HasTheCaller) {
  EXPECT_THAT(list_threads(Pid{::getpid()}), Contains(Tid{::gettid()}));
  EXPECT_TRUE(is_alive(Tid{::gettid()}));
}

TEST(ThreadList, IsEmptyForAProcessThatIsGoneAndAZombieIsNotAlive) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(is_alive(Tid{child}));
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(list_threads(Pid{child}), IsEmpty());
  EXPECT_FALSE(is_alive(Tid{child}));
}

}  // namespace

}  // namespace ddprof
