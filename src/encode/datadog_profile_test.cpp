#include "encode/datadog_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/pprof.hpp"
#include "encode/profile_fixture.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing_data::RichProfile;

std::vector<std::pair<std::string, std::string>> columns_of(const Profile& profile) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const ValueType& type : profile.value_types)
    columns.emplace_back(profile.text(type.type), profile.text(type.unit));
  return columns;
}

std::vector<std::string> names_of(const Profile& profile, const ProfileSample& sample) {
  std::vector<std::string> names;
  for (std::uint32_t location : sample.locations) {
    const auto& lines = profile.locations[location].lines;
    EXPECT_LE(lines.size(), 1U);
    names.emplace_back(lines.empty() ? "" : profile.text(profile.functions[lines[0].function].name));
  }
  return names;
}

TEST(DatadogProfile, NamesItsColumnsAndPutsTheValueFirst) {
  const Profile profile = for_datadog(RichProfile().build());
  EXPECT_THAT(columns_of(profile),
              ElementsAre(Pair("cpu-time", "nanoseconds"), Pair("cpu-samples", "count")));
  EXPECT_THAT(profile.samples[0].values, ElementsAre(2'000'000'000, 200));
  EXPECT_EQ(profile.text(profile.period_type.type), "cpu-time");
  EXPECT_EQ(profile.text(profile.default_value_type), "cpu-time");
}

TEST(DatadogProfile, LeavesColumnsOfOtherEventsAlone) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("page-faults", "count")};
  const Profile profile = for_datadog(std::move(builder).build());
  EXPECT_THAT(columns_of(profile), ElementsAre(Pair("page-faults", "count"), Pair("sample", "count")));
}

TEST(DatadogProfile, LeavesColumnsWhereTheyAreUnlessTheFirstOfSeveralCounts) {
  const auto columns_with = [](std::initializer_list<const char*> names) {
    ProfileBuilder builder;
    for (const char* name : names) builder.profile().value_types.push_back(builder.value_type(name, "x"));
    return columns_of(for_datadog(std::move(builder).build()));
  };
  EXPECT_THAT(columns_with({"cpu", "samples"}), ElementsAre(Pair("cpu-time", "x"), Pair("cpu-samples", "x")));
  EXPECT_THAT(columns_with({"samples"}), ElementsAre(Pair("sample", "x")));
}

TEST(DatadogProfile, SpellsLabelsAsTheBackendDoes) {
  RichProfile rich;
  rich.add({rich.main()}, 1, 7, "thread", "process", 5, 1'700'000'000'500'000'001);
  const Profile profile = for_datadog(std::move(rich).build());
  std::vector<std::string> keys;
  for (const ProfileLabel& label : profile.samples.back().labels) keys.emplace_back(profile.text(label.key));
  EXPECT_THAT(keys,
              ElementsAre("thread id", "thread name", "process_id", "process name", "end_timestamp_ns"));
  const ProfileLabel& time = profile.samples.back().labels.back();
  const std::int64_t unit = datadog_time_unit_ns(profile);
  EXPECT_EQ(time.number % unit, 0);
  EXPECT_LE(time.number, 1'700'000'000'500'000'001);
  EXPECT_GT(time.number, 1'700'000'000'500'000'001 - unit);
  EXPECT_EQ(time.unit, 0U);
}

TEST(DatadogProfile, RoundsTimesToASixteenthOfTheSamplingPeriod) {
  ProfileBuilder builder;
  builder.profile().period_type = builder.value_type("cpu", "nanoseconds");
  Profile profile = std::move(builder).build();
  for (const auto& [period, unit] : {std::pair(10'101'010, 524'288), {1'001'001, 32'768}, {31, 1}, {0, 1}}) {
    profile.period = period;
    EXPECT_EQ(datadog_time_unit_ns(profile), unit) << period;
  }
}

TEST(DatadogProfile, RoundsNoTimeToBeforeThePeriod) {
  RichProfile rich;
  rich.add({rich.main()}, 1, 7, "thread", "process", 5, 1'700'000'000'000'000'001);
  Profile from = std::move(rich).build();
  from.time_ns = 1'700'000'000'000'000'000;
  const Profile profile = for_datadog(from);
  EXPECT_EQ(profile.samples.back().labels.back().number, from.time_ns);
}

TEST(DatadogProfile, LeavesOutNamesThatAreEmpty) {
  RichProfile rich;
  rich.add({rich.main()}, 1, 7, "", "", 5);
  const Profile profile = for_datadog(std::move(rich).build());
  EXPECT_EQ(profile.samples.back().labels.size(), 2U);
}

TEST(DatadogProfile, GivesEachInlinedCallALocation) {
  const Profile profile = for_datadog(RichProfile().build());
  EXPECT_THAT(names_of(profile, profile.samples[0]),
              ElementsAre("add(int; int)", "scale<\"x\">", "work()", "main"));
  const auto& stack = profile.samples[0].locations;
  EXPECT_EQ(profile.locations[stack[2]].address.value, profile.locations[stack[0]].address.value);
  EXPECT_EQ(profile.locations[stack[2]].lines[0].line, 12);
}

TEST(DatadogProfile, CutsStacksThatAreTooDeep) {
  RichProfile rich;
  rich.add(std::vector<std::uint32_t>(600, rich.main()), 1, 7, "t", "p", 5);
  rich.add(std::vector<std::uint32_t>(201, rich.work()), 1, 7, "t", "p", 5);
  const Profile profile = for_datadog(std::move(rich).build());
  const auto& fits = profile.samples[profile.samples.size() - 2];
  EXPECT_THAT(names_of(profile, fits), testing::Each("main"));
  const auto& deep = profile.samples.back();
  EXPECT_EQ(deep.locations.size(), kMaxDatadogFrames);
  EXPECT_EQ(names_of(profile, deep).back(), "[truncated: only 599 frames are sent]");
}

TEST(DatadogProfile, IsEncodedAsIfItHadBeenMade) {
  RichProfile rich;
  rich.add(std::vector<std::uint32_t>(201, rich.work()), 1, 7, "t", "p", 5, 1'700'000'000'000'000'001);
  rich.add({rich.main()}, 1, 7, "", "p", 5);
  const Profile profile = std::move(rich).build();
  EXPECT_EQ(encode_for_datadog(profile), encode_pprof(for_datadog(profile)));
}

}  // namespace
}  // namespace ddprof
