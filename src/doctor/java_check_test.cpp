#include "doctor/java_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {

namespace {

using testing::HasSubstr;

TEST(CheckJava, SaysNothingWhereNoneRunsOrAllKeepFramePointers) {
  EXPECT_FALSE(check_java({}));
  const std::vector<JavaProcess> fine = {{Pid{7}, "java", true}};
  EXPECT_FALSE(check_java(fine));
}

TEST(CheckJava, NamesTheFirstWithoutFramePointers) {
  const std::vector<JavaProcess> running = {
      {Pid{7}, "java", true}, {Pid{8}, "shop", false}, {Pid{9}, "java", false}};
  const auto finding = check_java(running);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->state, CheckState::limited);
  EXPECT_THAT(finding->fact, HasSubstr("8 (shop) (and 1 more)"));
  EXPECT_THAT(finding->hint.command, HasSubstr("-XX:+PreserveFramePointer"));
  EXPECT_THAT(finding->hint.command, HasSubstr("jcmd 8 Compiler.perfmap"));
}

TEST(CheckJava, ReadsTheOptionWhereverItIsGiven) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(keeps_frame_pointers("java\0-jar\0shop.jar\0"sv, "HOME=/\0"sv));
  EXPECT_TRUE(keeps_frame_pointers("java\0-XX:+PreserveFramePointer\0-jar\0shop.jar\0"sv, ""));
  EXPECT_TRUE(keeps_frame_pointers("java\0"sv, "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\0"sv));
  EXPECT_FALSE(keeps_frame_pointers("java\0-XX:-PreserveFramePointer\0"sv,
                                    "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\0"sv));
  EXPECT_TRUE(keeps_frame_pointers("java\0-XX:-PreserveFramePointer\0-XX:+PreserveFramePointer\0"sv, ""));
}

}  // namespace

}  // namespace ddprof
