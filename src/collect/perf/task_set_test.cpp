#include "collect/perf/task_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace ddprof {

namespace {

using ::testing::ElementsAre;

TEST(TaskSet, FollowsAProcessAsLongAsAThreadLives) {
  TaskSet tasks;
  EXPECT_TRUE(tasks.add(Tid{10}, Pid{10}));
  EXPECT_TRUE(tasks.add(Tid{11}, Pid{10}));
  EXPECT_FALSE(tasks.add(Tid{11}, Pid{10}));
  EXPECT_TRUE(tasks.remove(Tid{10}));
  EXPECT_TRUE(tasks.has_process(Pid{10}));
  EXPECT_TRUE(tasks.remove(Tid{11}));
  EXPECT_FALSE(tasks.has_process(Pid{10}));
  EXPECT_TRUE(tasks.empty());
  EXPECT_FALSE(tasks.remove(Tid{11}));
}

TEST(TaskSet, GivesTheLastStateOfATaskThatEnds) {
  TaskSet tasks;
  tasks.add(Tid{10}, Pid{10});
  tasks.find(Tid{10})->samples = 3;
  TaskSet::Task last;
  tasks.remove(Tid{10}, &last);
  EXPECT_EQ(last.samples, 3U);
}

TEST(TaskSet, NoticesANumberThatIsUsedAgain) {
  TaskSet tasks;
  tasks.add(Tid{11}, Pid{10});
  tasks.find(Tid{11})->samples = 3;
  EXPECT_TRUE(tasks.add(Tid{11}, Pid{20}));
  EXPECT_FALSE(tasks.has_process(Pid{10}));
  EXPECT_TRUE(tasks.has_process(Pid{20}));
  EXPECT_EQ(tasks.find(Tid{11})->samples, 0U);
}

TEST(TaskSet, KeepsOneThreadAcrossExec) {
  TaskSet tasks;
  tasks.add(Tid{10}, Pid{10});
  tasks.add(Tid{11}, Pid{10});
  tasks.add(Tid{12}, Pid{10});
  tasks.exec(Pid{10});
  EXPECT_EQ(tasks.size(), 1U);
  // The exits of the others may still arrive.
  EXPECT_FALSE(tasks.remove(Tid{11}));
  EXPECT_TRUE(tasks.remove(Tid{10}));
  EXPECT_FALSE(tasks.has_process(Pid{10}));
}

TEST(TaskSet, KeepsAProcessWhoseMainThreadEndedBeforeItsExec) {
  TaskSet tasks;
  tasks.add(Tid{10}, Pid{10});
  tasks.add(Tid{11}, Pid{10});
  tasks.remove(Tid{10});
  tasks.exec(Pid{10});
  EXPECT_NE(tasks.find(Tid{10}), nullptr);
  EXPECT_EQ(tasks.find(Tid{11}), nullptr);
}

TEST(TaskSet, ListsWhoIsNotCounted) {
  TaskSet tasks;
  tasks.add(Tid{10}, Pid{10});
  tasks.add(Tid{11}, Pid{10});
  tasks.find(Tid{10})->is_counted = true;
  EXPECT_THAT(tasks.uncounted(), ElementsAre(Tid{11}));
}

TEST(TaskSet, BelievesNoNumbersThatNoTaskHas) {
  auto memory = MappedRegion::map_anonymous_shared(6 * sizeof(TaskRoster::Entry));
  ASSERT_TRUE(memory.ok());
  const TaskRoster::Entry written[] = {{-1, 10}, {10, -1}, {10, 0}, {1 << 23, 10}, {11, 10}, {0, 0}};
  std::memcpy(memory->data(), written, sizeof written);
  TaskSet tasks;
  tasks.share(TaskRoster(std::move(memory).value()));
  tasks.read_roster(false);
  EXPECT_THAT(tasks.all(), ElementsAre(Tid{11}));
}

constexpr std::uint64_t kMillisecond = 1'000'000;

// Ends `count` tasks of so many samples at an even pace, beside others that get so many samples meanwhile.
std::uint64_t end_tasks(ShortTasks& tasks, std::uint64_t start, int count, std::uint64_t gap,
                        std::uint32_t samples, int others = 0) {
  std::uint64_t time = start;
  for (int i = 0; i < count; ++i, time += gap) {
    for (int sample = 0; sample < static_cast<int>(samples) + others; ++sample) tasks.note_sample();
    tasks.note_end(time, samples);
  }
  return time;
}

struct ShortTasksCase {
  const char* name;
  int count;
  std::uint64_t gap_ms;
  std::uint32_t samples;
  int others;
  bool matter;
};

class ShortTasksTest : public ::testing::TestWithParam<ShortTasksCase> {};

TEST_P(ShortTasksTest, MatterByTheirPartOfTheTime) {
  const ShortTasksCase& scene = GetParam();
  ShortTasks tasks;
  const std::uint64_t now =
      end_tasks(tasks, 1, scene.count, scene.gap_ms * kMillisecond, scene.samples, scene.others);
  EXPECT_EQ(tasks.matter(now + 500 * kMillisecond), scene.matter);
}

INSTANTIATE_TEST_SUITE_P(All, ShortTasksTest,
                         ::testing::Values(ShortTasksCase{"OfAMillisecond", 600, 1, 0, 0, true},
                                           ShortTasksCase{"OfSixteen", 60, 16, 1, 0, true},
                                           ShortTasksCase{"OfFiftyOneAfterTheOther", 60, 50, 4, 0, true},
                                           ShortTasksCase{"LongOnes", 60, 100, 10, 0, false},
                                           ShortTasksCase{"AFewASecond", 200, 100, 0, 0, false},
                                           ShortTasksCase{"AShortBurst", 40, 1, 0, 0, false},
                                           ShortTasksCase{"BesideLongOnes", 600, 5, 0, 3, false},
                                           ShortTasksCase{"BesideFewerLongOnes", 600, 5, 0, 1, true}),
                         [](const auto& scene) { return scene.param.name; });

TEST(ShortTasks, AreJudgedWhenTheWindowIsOver) {
  ShortTasks tasks;
  const std::uint64_t now = end_tasks(tasks, 1, 100, kMillisecond, 0);
  EXPECT_FALSE(tasks.matter(now));
  EXPECT_TRUE(tasks.matter(now + 500 * kMillisecond));
  EXPECT_EQ(tasks.ended(), 100U);
}

// 50 of them must have ended in all, more than ten in half a second, with more than a fifth of the CPU time.
TEST(ShortTasks, MatterBeyondTheirLimits) {
  const auto matter = [](int before, int unseen, int samples_of_others) {
    ShortTasks tasks;
    std::uint64_t now = end_tasks(tasks, 1, before, 200 * kMillisecond, 0);
    EXPECT_FALSE(tasks.matter(now += 500 * kMillisecond)) << "two or three in each window";
    now = end_tasks(tasks, now, unseen, kMillisecond, 0);
    for (int sample = 0; sample < samples_of_others; ++sample) tasks.note_sample();
    return tasks.matter(now + 500 * kMillisecond);
  };
  EXPECT_TRUE(matter(39, 11, 0));
  EXPECT_FALSE(matter(38, 11, 0)) << "49 in all";
  EXPECT_FALSE(matter(60, 10, 0)) << "ten at a time";
  EXPECT_TRUE(matter(60, 12, 23)) << "6 of 29 periods";
  EXPECT_FALSE(matter(60, 12, 24)) << "6 of 30 periods";
}

// A sixteenth of a CPU, all of it in short tasks: few in any half second, and yet all that there is.
TEST(ShortTasks, OfAProgramThatIsMostlyIdleMatterAfterSomeTime) {
  ShortTasks tasks;
  std::uint64_t now = end_tasks(tasks, 1, 60, 250 * kMillisecond, 1);
  EXPECT_TRUE(tasks.matter_now());
  EXPECT_FALSE(tasks.matter(now)) << "events of all CPUs would cost others more";
  for (int second = 0; second < 30; ++second) tasks.matter(now += 1000 * kMillisecond);
  EXPECT_TRUE(tasks.matter_now()) << "it may only be idle";
  now = end_tasks(tasks, now, 12, 200 * kMillisecond, ShortTasks::kFewSamples + 8);
  EXPECT_FALSE(tasks.matter_now()) << "now it has long ones";
}

TEST(ShortTasks, HaveAMeanOfThoseThatWereJudged) {
  ShortTasks tasks;
  std::uint64_t now = 1;
  for (int i = 0; i < 60; ++i, now += 100 * kMillisecond) {
    tasks.note_total(static_cast<std::uint64_t>(i < 30 ? 1 : 3) * kMillisecond);
    tasks.note_end(now, 0);
  }
  EXPECT_EQ(tasks.mean_ns(), 3 * kMillisecond);
}

TEST(ShortTasks, EndWithFewerThanEightSamples) {
  ShortTasks tasks;
  tasks.note_end(1, ShortTasks::kFewSamples - 1);
  EXPECT_EQ(tasks.ended(), 1U);
  tasks.note_end(1, ShortTasks::kFewSamples);
  EXPECT_EQ(tasks.ended(), 1U);
}

TEST(ShortTasks, AWindowIsHalfASecond) {
  ShortTasks tasks;
  end_tasks(tasks, 1, 100, 1, 0);
  EXPECT_FALSE(tasks.matter(500 * kMillisecond));
  EXPECT_TRUE(tasks.matter(500 * kMillisecond + 1));
}

TEST(TaskSet, TheRosterHasThePlacesOfTasksThatEnded) {
  auto memory = MappedRegion::map_anonymous_shared(2 * sizeof(TaskRoster::Entry));
  ASSERT_TRUE(memory.ok());
  TaskRoster roster(std::move(memory).value());
  const std::uint32_t first = roster.add({1 << 22, 10});
  roster.add({12, 10});
  EXPECT_EQ(roster.add({13, 10}), TaskRoster::kNowhere) << "it is full";
  EXPECT_EQ(roster.read().size(), 2U) << "the greatest number of a task among them";
  roster.remove(first);
  ASSERT_EQ(roster.read().size(), 1U);
  EXPECT_EQ(roster.add({13, 10}), first);
  EXPECT_EQ(roster.add({14, 10}), TaskRoster::kNowhere);
}

}  // namespace

}  // namespace ddprof
