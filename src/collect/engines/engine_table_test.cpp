#include "collect/engines/engine_table.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(EngineTable, AutomaticIsTheFirst) {
  ASSERT_FALSE(engine_table().empty());
  EXPECT_FALSE(engine_table().front().is_hidden);
  EXPECT_TRUE(choose_engine("auto").ok());
}

TEST(EngineTable, ShowsWhatUsersCanChoose) {
  EXPECT_EQ(engine_choices(), "auto perf");
  EXPECT_EQ(hidden_engine_choices(), "replay: ");
}

TEST(EngineTable, WhatFollowsTheColonIsTheSource) {
  EXPECT_EQ(choose_engine("replay:/tmp/a:b")->source, "/tmp/a:b");
  EXPECT_EQ(choose_engine("perf")->source, "");
  EXPECT_FALSE(choose_engine("none").ok());
}

}  // namespace
}  // namespace ddprof
