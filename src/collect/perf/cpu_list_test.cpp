#include "collect/perf/cpu_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using ::testing::ElementsAre;

TEST(CpuList, ReadsNumbersAndRanges) {
  EXPECT_THAT(*parse_cpu_list("0"), ElementsAre(0));
  EXPECT_THAT(*parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*parse_cpu_list("2,5-6"), ElementsAre(2, 5, 6));
}

TEST(CpuList, RefusesWhatIsNotAList) {
  for (const char* text : {"", "x", "1-", "3-1", "1,,2", "0-99999999999", "-1", "1 2"})
    EXPECT_FALSE(parse_cpu_list(text).ok()) << text;
}

TEST(CpuList, FindsTheCpuThatRunsThisTest) {
  auto cpus = online_cpus();
  ASSERT_TRUE(cpus.ok());
  EXPECT_FALSE(cpus->empty());
}

}  // namespace
}  // namespace ddprof
