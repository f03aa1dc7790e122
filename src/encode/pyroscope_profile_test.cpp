#include "encode/pyroscope_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::string, std::string>> labels_of(const Profile& profile,
                                                           const ProfileSample& sample) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const ProfileLabel& label : sample.labels)
    labels.emplace_back(profile.text(label.key), profile.text(label.text));
  return labels;
}

ProfileBuilder builder_of(std::string_view type) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type(type, "nanoseconds")};
  builder.profile().period_type = builder.profile().value_types[1];
  builder.profile().default_value_type = builder.profile().value_types[1].type;
  return builder;
}

TEST(PyroscopeProfile, AddsUpWhatDiffersInNumbersAlone) {
  ProfileBuilder builder = builder_of("cpu");
  const std::uint32_t main = builder.add_named_location("main"), leaf = builder.add_named_location("leaf");
  for (int i = 0; i < 1000; ++i) {
    const auto time = builder.number_label(kEndTimestampLabel, 1'714'564'800'000'000'000 + i, "nanoseconds");
    const auto thread = builder.number_label(kThreadIdLabel, 100 + i % 7);
    builder.add_sample({{leaf, main}, {1, 10}, {thread, time}});
    builder.add_sample({{main}, {1, 5}, {thread, time}});
  }
  const Profile profile = for_pyroscope(std::move(builder).build());
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_THAT(profile.samples[0].values, ElementsAre(1000, 10'000));
  EXPECT_THAT(profile.samples[0].locations, ElementsAre(leaf, main));
  EXPECT_THAT(profile.samples[1].values, ElementsAre(1000, 5000));
  EXPECT_TRUE(profile.samples[0].labels.empty());
}

TEST(PyroscopeProfile, HasNoSeriesForEverySpan) {
  ProfileBuilder builder = builder_of("cpu");
  for (int i = 0; i < 10; ++i) {
    builder.add_sample(
        {{},
         {1, 10},
         {builder.number_label(kSpanIdLabel, i + 1), builder.text_label(kTraceIdLabel, std::to_string(i)),
          builder.text_label("request", std::to_string(i)),
          builder.text_label(kTraceEndpointLabel, "/cart")}});
  }
  builder.profile().context_keys = {builder.intern("request")};
  const Profile profile = for_pyroscope(std::move(builder).build());
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_THAT(labels_of(profile, profile.samples[0]), ElementsAre(Pair("trace_endpoint", "/cart")));
}

TEST(PyroscopeProfile, NamesLabelsAsAServerTakesThem) {
  ProfileBuilder builder = builder_of("cpu");
  const std::uint32_t main = builder.add_named_location("main");
  for (const char* name : {"a", "b", "a"})
    builder.add_sample(
        {{main}, {1, 10}, {builder.text_label(kThreadNameLabel, name), builder.text_label("1-x", "y")}});
  const Profile profile = for_pyroscope(std::move(builder).build());
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_THAT(labels_of(profile, profile.samples[0]),
              ElementsAre(Pair("_1_x", "y"), Pair("thread_name", "a")));
  EXPECT_THAT(profile.samples[0].values, ElementsAre(2, 20));
  EXPECT_THAT(labels_of(profile, profile.samples[1]),
              ElementsAre(Pair("_1_x", "y"), Pair("thread_name", "b")));
}

TEST(PyroscopeProfile, GivesALabelOneValue) {
  ProfileBuilder builder = builder_of("cpu");
  builder.add_sample({{}, {1, 1}, {builder.text_label("a b", "1"), builder.text_label("a_b", "2")}});
  const Profile profile = for_pyroscope(std::move(builder).build());
  EXPECT_THAT(labels_of(profile, profile.samples[0]), ElementsAre(Pair("a_b", "1")));
}

TEST(PyroscopeProfile, HasColumnsWithoutHyphens) {
  const Profile profile = for_pyroscope(builder_of("page-faults").build());
  EXPECT_EQ(profile.text(profile.value_types[0].type), "samples");
  EXPECT_EQ(profile.text(profile.value_types[1].type), "page_faults");
  EXPECT_EQ(profile.text(profile.period_type.type), "page_faults");
  EXPECT_EQ(profile.text(profile.default_value_type), "page_faults");
}

}  // namespace
}  // namespace ddprof
