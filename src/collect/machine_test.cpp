#include "collect/machine.hpp"

#include <gtest/gtest.h>

#include "collect/machine_fixture.hpp"

namespace ddprof {
namespace {

TEST(Machine, ReadsBelowItsRoot) {
  RecordedMachine recorded;
  recorded.file("/proc/sys/kernel/kptr_restrict", "1\n").link("/proc/self/ns/pid", "pid:[1]");
  const Machine machine = recorded.machine();
  EXPECT_EQ(machine.text("/proc/sys/kernel/kptr_restrict"), "1");
  EXPECT_EQ(machine.number("/proc/sys/kernel/kptr_restrict"), 1);
  EXPECT_EQ(machine.link("/proc/self/ns/pid"), "pid:[1]");
  EXPECT_TRUE(machine.exists("/proc/sys"));
}

TEST(Machine, SaysNothingAboutWhatIsNotThere) {
  RecordedMachine recorded;
  recorded.file("/word", "max\n").file("/negative", "-1\n");
  const Machine machine = recorded.machine();
  EXPECT_FALSE(machine.text("/nothing"));
  EXPECT_FALSE(machine.number("/nothing"));
  EXPECT_FALSE(machine.number("/word"));
  EXPECT_EQ(machine.number("/negative"), -1);
  EXPECT_FALSE(machine.link("/word"));
  EXPECT_FALSE(machine.exists("/nothing"));
}

}  // namespace
}  // namespace ddprof
