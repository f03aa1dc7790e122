#include "session/process_choice.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

using Choice = ProcessChoice::Choice;

class ProcessChoiceTest : public ::testing::Test {
 protected:
  void start(std::int32_t pid, const char* name) {
    processes.rename(Pid{kFirst + pid}, Tid{kFirst + pid}, name, true);
  }
  void end(std::int32_t pid) {
    processes.exit(Pid{kFirst + pid}, Tid{kFirst + pid});
    choice->note_exit(Pid{kFirst + pid});
  }
  Choice choose(std::int32_t pid) {
    return choice->choose({.pid = Pid{kFirst + pid}, .tid = Tid{kFirst + pid}, .value = 1000}, true);
  }
  void choose(const std::vector<std::string>& include, const std::vector<std::string>& exclude,
              std::optional<std::size_t> max_processes = std::nullopt) {
    ProcessChoice::Options options{.is_whole_host = true, .max_processes = max_processes};
    auto filter = ProcessFilter::parse(include, exclude);
    ASSERT_TRUE(filter.ok());
    if (!filter->is_empty())
      options.filter = std::make_shared<const ProcessFilter>(std::move(filter).value());
    choice.emplace(processes, options);
  }

  static constexpr std::int32_t kFirst = 1 << 23;  // above any pid_max
  ProcFileProvider provider;
  FileRegistry files{provider};
  ProcessTable processes{files, ProcessTable::Follows::whole_host};
  std::optional<ProcessChoice> choice;
};

TEST_F(ProcessChoiceTest, WhatIsExcludedIsCounted) {
  choose({}, {"name:cron"});
  start(1, "cron");
  start(2, "server");
  EXPECT_EQ(choose(1), Choice::excluded);
  EXPECT_EQ(choose(1), Choice::excluded);
  EXPECT_EQ(choose(2), Choice::profiled);
  EXPECT_EQ(choice->excluded().processes, 1U);
  EXPECT_EQ(choice->excluded().samples, 2U);
  EXPECT_EQ(choice->excluded().cpu, 2000);
  EXPECT_FALSE(choice->follows(Pid{kFirst + 1}));
  EXPECT_TRUE(choice->follows(Pid{kFirst + 2}));
}

TEST_F(ProcessChoiceTest, AnotherProgramIsJudgedAnew) {
  choose({"name:server"}, {});
  start(1, "sh");
  EXPECT_EQ(choose(1), Choice::excluded);
  start(1, "server");
  EXPECT_EQ(choose(1), Choice::profiled);
}

TEST_F(ProcessChoiceTest, PastTheLimitNewProcessesWaitUntilOneEnds) {
  choose({}, {}, 2);
  for (int pid = 1; pid <= 3; ++pid) start(pid, "server");
  EXPECT_EQ(choose(1), Choice::profiled);
  EXPECT_EQ(choose(2), Choice::profiled);
  EXPECT_EQ(choose(3), Choice::over_limit);
  EXPECT_EQ(choose(1), Choice::profiled);
  end(1);
  EXPECT_EQ(choose(3), Choice::profiled);
  EXPECT_EQ(choice->over_limit().samples, 1U);
}

TEST_F(ProcessChoiceTest, AnIdleProcessMakesRoomWhenThePeriodCloses) {
  choose({}, {}, 1);
  start(1, "idle");
  start(2, "server");
  EXPECT_EQ(choose(1), Choice::profiled);
  choice->close_period();
  EXPECT_EQ(choose(2), Choice::over_limit);  // it was sampled in the period that has just closed
  choice->close_period();
  EXPECT_EQ(choose(2), Choice::profiled);
}

TEST_F(ProcessChoiceTest, WhatIsExcludedTakesNoRoom) {
  choose({}, {"name:cron"}, 1);
  start(1, "cron");
  start(2, "server");
  EXPECT_EQ(choose(1), Choice::excluded);
  EXPECT_EQ(choose(2), Choice::profiled);
}

TEST_F(ProcessChoiceTest, OneTargetIsAlwaysProfiled) {
  choice.emplace(processes, ProcessChoice::Options{.is_whole_host = false, .max_processes = 0});
  EXPECT_EQ(choose(1), Choice::profiled);
  EXPECT_EQ(processes.find(Pid{kFirst + 1}), nullptr);  // and nothing is read for it
}

}  // namespace
}  // namespace ddprof
