#include "profile/marker.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

Frame stopped(StopReason reason, std::uint64_t address = 0) {
  return {.kind = FrameKind::stopped, .reason = reason, .address = address};
}

TEST(Marker, NamesTheModuleThatStoppedTheUnwinder) {
  EXPECT_EQ(marker_name(stopped(StopReason::no_unwind_info), "libfoo.so"),
            "[truncated: no unwind info in libfoo.so]");
  EXPECT_EQ(marker_name(stopped(StopReason::bad_memory), "libfoo.so"),
            "[truncated: bad memory in libfoo.so]");
  EXPECT_EQ(marker_name(stopped(StopReason::unsupported_rule), ""), "[truncated: unsupported unwind rule]");
}

TEST(Marker, SaysHowManyFramesWereKept) {
  EXPECT_EQ(marker_name(stopped(StopReason::depth_limit, 512), ""), "[truncated: more than 512 frames]");
}

TEST(Marker, IsEmptyForCodeAndForCompleteStacks) {
  EXPECT_EQ(marker_name(Frame{.file = FileId{1}, .address = 1}, "a"), "");
  EXPECT_EQ(marker_name(Frame{.kind = FrameKind::kernel, .address = 1}, "a"), "");
  EXPECT_EQ(marker_name(stopped(StopReason::complete), "a"), "");
}

TEST(Marker, EveryMarkerIsRecognisedAsOne) {
  for (std::size_t reason = 1; reason < kStopReasons; ++reason) {
    const std::string name = marker_name(stopped(static_cast<StopReason>(reason), 9), "libfoo.so");
    EXPECT_TRUE(is_marker_name(name)) << name;
  }
  for (Loss loss :
       {Loss::unsampled, Loss::lost, Loss::kernel, Loss::throttled, Loss::too_many_stacks, Loss::worker}) {
    const std::string name = marker_name({.kind = FrameKind::accounted, .loss = loss}, "");
    EXPECT_TRUE(is_marker_name(name)) << name;
  }
}

TEST(Marker, ModuleNamesInBracketsAreNotMarkers) {
  EXPECT_FALSE(is_marker_name("[vdso]"));
  EXPECT_FALSE(is_marker_name("[nf_tables]"));
  EXPECT_FALSE(is_marker_name("main"));
  EXPECT_FALSE(is_marker_name(""));
}

}  // namespace
}  // namespace ddprof
