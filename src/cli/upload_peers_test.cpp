#include "cli/option_rules.hpp"

#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/option_table.hpp"
#include "cli/show_config.hpp"
#include "export/peers.hpp"

namespace ddprof {
namespace {

Options with_timeline_chosen(Options options) {
  choose_timeline(options);
  return options;
}

TEST(Timeline, IsOnWhereProfilesAreUploaded) {
  const Options options = with_timeline_chosen(parsed({"-U", "http://there:80", "program"}));
  EXPECT_TRUE(options.timeline);
  EXPECT_EQ(describe(origin_of(options, "timeline")), "default: uploads to Datadog have it");
}

TEST(Timeline, IsNotForReceiversThatMayRefuseIt) {
  for (const char* option : {"--otlp-endpoint", "--pyroscope-url"})
    EXPECT_FALSE(with_timeline_chosen(parsed({option, "http://there:80", "program"})).timeline) << option;
}

TEST(Timeline, IsOffInFiles) {
  EXPECT_FALSE(with_timeline_chosen(parsed({"program"})).timeline);
  EXPECT_FALSE(with_timeline_chosen(parsed({"record", "program"})).timeline);
  EXPECT_FALSE(
      with_timeline_chosen(parsed({"-U", "http://there:80", "--do-export=false", "program"})).timeline);
}

TEST(Timeline, IsWhatTheUserWants) {
  EXPECT_FALSE(with_timeline_chosen(parsed({"-U", "http://there:80", "--no-timeline", "program"})).timeline);
  EXPECT_TRUE(with_timeline_chosen(parsed({"record", "--timeline", "program"})).timeline);
  const OptionFixture fixture{.variables = {{"DD_PROFILING_TIMELINE_ENABLE", "false"}}};
  EXPECT_FALSE(with_timeline_chosen(fixture.parsed({"-U", "http://there:80", "program"})).timeline);
}

}  // namespace
}  // namespace ddprof
