#include "profile/thread_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

TEST(ThreadTable, NumbersThreadsAndTheirProcessesInOrderOfAppearance) {
  ProfileBuilder builder;
  const auto add = [&](std::string_view process, std::int64_t pid, std::int64_t tid) {
    builder.add_sample(
        {{},
         {},
         {builder.text_label("other", "x"), builder.number_label(kThreadIdLabel, tid),
          builder.text_label(kThreadNameLabel, "worker"), builder.number_label(kProcessIdLabel, pid),
          builder.text_label(kProcessNameLabel, process)}});
  };
  add("server", 10, 11);
  add("server", 10, 12);
  add("helper", 20, 11);
  add("server", 10, 11);
  const ThreadTable table(builder.profile());
  ASSERT_EQ(table.threads().size(), 3U);
  ASSERT_EQ(table.processes().size(), 2U);
  EXPECT_EQ(table.of(0), 0U);
  EXPECT_EQ(table.of(1), 1U);
  EXPECT_EQ(table.of(2), 2U);
  EXPECT_EQ(table.of(3), 0U);
  EXPECT_EQ(table.threads()[1].id, "12");
  EXPECT_EQ(table.threads()[1].name, "worker");
  EXPECT_EQ(table.processes()[table.threads()[2].process].name, "helper");
  EXPECT_EQ(table.processes()[table.threads()[2].process].id, "20");
}

TEST(ThreadTable, SamplesWithoutLabelsAreOneThreadWithoutAName) {
  ProfileBuilder builder;
  builder.add_sample({});
  builder.add_sample({});
  const ThreadTable table(builder.profile());
  ASSERT_EQ(table.threads().size(), 1U);
  EXPECT_EQ(table.threads()[0].name, "");
  EXPECT_EQ(table.processes()[0].id, "");
}

TEST(ThreadTable, ATextTwiceInTheStringTableIsStillTheSameKey) {
  Profile profile;
  profile.strings = {"", "thread id", "thread id"};
  profile.samples.resize(2);
  profile.samples[0].labels = {{1, 0, 5, 0}};
  profile.samples[1].labels = {{2, 0, 5, 0}};
  EXPECT_EQ(ThreadTable(profile).threads().size(), 1U);
}

}  // namespace
}  // namespace ddprof
