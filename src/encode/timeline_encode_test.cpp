#include <gtest/gtest.h>

#include "encode/datadog_profile.hpp"
#include "encode/output_format.hpp"
#include "encode/pprof.hpp"
#include "encode/profile_fixture.hpp"
#include "encode/pyroscope_profile.hpp"
#include "profile/timeline.hpp"

namespace ddprof {
namespace {

// Encoders take a timeline apart on their own, without ever having a sample for each of its events. What
// they write must be as if they had.

Profile profile_with_timeline() {
  testing_data::RichProfile rich;
  Profile& profile = rich.profile();
  const std::int64_t start = profile.time_ns;
  profile.strings.insert(profile.strings.end(), {"end_timestamp_ns", "nanoseconds"});
  const auto last = static_cast<StringIndex>(profile.strings.size() - 1);
  profile.time_label = {.key = last - 1, .unit = last};
  for (std::size_t i = 0; i < 3; ++i) {  // the others have none
    ProfileSample& sample = profile.samples[i];
    for (std::int64_t event = 0; event < 40; ++event)
      sample.times.push_back(start + static_cast<std::int64_t>(i) + event * 10'000'123);
    sample.events = 43;  // three have no time, and their number divides no value
  }
  return std::move(rich).build();
}

TEST(TimelineEncode, IsAsIfEveryEventWereASample) {
  const Profile compact = profile_with_timeline();
  const Profile expanded = with_a_sample_per_event(compact);
  ASSERT_GT(expanded.samples.size(), 3 * compact.samples.size());
  for (const OutputFormat format : {OutputFormat::pprof, OutputFormat::folded, OutputFormat::speedscope,
                                    OutputFormat::firefox, OutputFormat::otlp, OutputFormat::svg}) {
    EXPECT_EQ(encode(compact, format).value(), encode(expanded, format).value());
  }
}

TEST(TimelineEncode, IsAsIfEveryEventWereASampleForDatadog) {
  const Profile compact = profile_with_timeline();
  EXPECT_EQ(encode_for_datadog(compact), encode_for_datadog(with_a_sample_per_event(compact)));
  EXPECT_EQ(encode_for_datadog(compact), encode_pprof(for_datadog(compact)));
}

TEST(TimelineEncode, IsGoneForPyroscope) {
  const Profile compact = profile_with_timeline();
  EXPECT_EQ(encode_pprof(for_pyroscope(compact)),
            encode_pprof(for_pyroscope(with_a_sample_per_event(compact))));
}

}  // namespace
}  // namespace ddprof
