#include "encode/viewer_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/profile_fixture.hpp"
#include "import/foreign_formats.hpp"
#include "import/json_document.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_data::column_names;
using testing_data::digest;
using testing_data::RichProfile;

TEST(Speedscope, KeepsStacksThreadsAndEveryColumnThroughARoundTrip) {
  const Profile profile = RichProfile().build();
  const Result<std::string> text = encode_speedscope(profile);
  ASSERT_TRUE(text.ok());
  const Result<Profile> again = decode_speedscope(*text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(column_names(*again), column_names(profile));
  EXPECT_EQ(digest(*again), digest(profile));
  EXPECT_EQ(again->text(again->default_value_type), "cpu");
}

TEST(Speedscope, OpensAllThreadsTogetherInTheDefaultColumn) {
  const std::string text = encode_speedscope(RichProfile().build()).value();
  const JsonDocument document = JsonDocument::parse(text, 1 << 20).value();
  EXPECT_EQ(json_number(document.root(), "activeProfileIndex"), 1);
  const auto& profiles = *json_array(document.root(), "profiles");
  EXPECT_EQ(json_text(profiles[1].as_object(), "name"), "all threads · cpu");
  EXPECT_EQ(json_text(profiles[1].as_object(), "unit"), "nanoseconds");
  EXPECT_EQ(json_number(profiles[1].as_object(), "endValue"), 3'550'000'000.0);
  EXPECT_EQ(json_text(profiles[2].as_object(), "name"), "app · tid 100 · app · pid 100 · samples");
  EXPECT_EQ(profiles.size(), 2U + 3U * 2U);
}

TEST(Speedscope, OpensTheOnlyThreadWhenThereIsOne) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  builder.add_sample({{builder.add_named_location("main")}, {5}, {}});
  const std::string text = encode_speedscope(std::move(builder).build()).value();
  EXPECT_THAT(text, HasSubstr("\"name\":\"samples · cpu\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("all threads")));
  EXPECT_EQ(decode_speedscope(text)->samples.at(0).labels.size(), 0U);
}

TEST(Speedscope, WritesInlinedCallsAsFramesWithFileAndStartLine) {
  const std::string text = encode_speedscope(RichProfile().build()).value();
  EXPECT_THAT(text, HasSubstr("{\"name\":\"add(int; int)\",\"file\":\"app.cc\",\"line\":1}"));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"scale<\\\"x\\\">\",\"file\":\"app.cc\",\"line\":4}"));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"lambda\\u000a1\",\"file\":\"[anonymous code]\"}"));
}

TEST(Speedscope, KeepsTheOrderOfTimeWhereSamplesHaveOne) {
  RichProfile rich;
  rich.profile().samples.clear();
  rich.add({rich.work(), rich.main()}, 1, 1, "t", "p", 1, 2000);
  rich.add({rich.main()}, 2, 1, "t", "p", 1, 3000);
  rich.add({rich.work(), rich.main()}, 4, 1, "t", "p", 1, 1000);
  EXPECT_THAT(encode_speedscope(std::move(rich).build()).value(), HasSubstr("\"weights\":[4,1,2]"));
}

TEST(Speedscope, RefusesNegativeValues) {
  Profile profile = RichProfile().build();
  profile.samples[0].values[0] = -1;
  const Result<std::string> text = encode_speedscope(profile);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("negative"));
}

TEST(Speedscope, ReadsSampledProfilesOfOthers) {
  const Result<Profile> profile = decode_speedscope(R"({
    "$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "other@1",
    "shared": {"frames": [{"name": "a", "file": "a.py", "line": 3, "col": 4}, {"name": "b"}]},
    "profiles": [{"type": "sampled", "name": "main", "unit": "milliseconds", "startValue": 0, "endValue": 3,
                  "samples": [[0, 1], [0], [0, 1]], "weights": [1, 0.5, 1.5]}]})");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_THAT(column_names(*profile), ElementsAre("time/nanoseconds"));
  EXPECT_EQ(digest(*profile),
            (testing_data::Digest{{"a;b in main  of  ", {2'500'000}}, {"a in main  of  ", {500'000}}}));
  const ProfileLocation& location = profile->locations[profile->samples[0].locations[1]];
  EXPECT_EQ(location.lines.at(0).line, 3);
  EXPECT_EQ(location.lines.at(0).column, 4);
}

TEST(Speedscope, ReadsEventedProfilesAsTheTimesBetweenEvents) {
  const Result<Profile> profile = decode_speedscope(R"({
    "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
    "profiles": [{"type": "evented", "name": "main", "unit": "seconds", "startValue": 1, "endValue": 8,
                  "events": [{"type": "O", "frame": 0, "at": 2}, {"type": "O", "frame": 1, "at": 3},
                             {"type": "C", "frame": 1, "at": 5}, {"type": "C", "frame": 0, "at": 8}]}]})");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(digest(*profile), (testing_data::Digest{{"a in main  of  ", {4'000'000'000}},
                                                    {"a;b in main  of  ", {2'000'000'000}}}));
}

TEST(Speedscope, SaysWhatIsWrongWithABadFile) {
  const auto message = [](std::string_view profiles) {
    const std::string text =
        R"({"shared":{"frames":[{"name":"a"}]},"profiles":[)" + std::string(profiles) + "]}";
    const Result<Profile> profile = decode_speedscope(text);
    return profile.ok() ? std::string("fine") : profile.error().message;
  };
  EXPECT_EQ(message(""), "fine");
  EXPECT_THAT(message("{}"), HasSubstr("neither sampled nor evented"));
  EXPECT_THAT(message(R"({"type":"sampled","samples":[[1]],"weights":[1]})"), HasSubstr("does not exist"));
  EXPECT_THAT(message(R"({"type":"sampled","samples":[[0]],"weights":[]})"), HasSubstr("weight for each"));
  EXPECT_THAT(message(R"({"type":"evented","events":[{"type":"O","frame":0,"at":1}]})"),
              HasSubstr("balanced"));
  EXPECT_THAT(message(R"({"type":"evented","events":[{"type":"C","frame":0,"at":1}]})"),
              HasSubstr("balanced"));
  EXPECT_THAT(message("{"), HasSubstr("read JSON"));
  EXPECT_THAT(decode_speedscope("[1]").error().message, HasSubstr("not an object"));
  EXPECT_THAT(decode_speedscope("{} x").error().message, HasSubstr("behind its end"));
}

TEST(Speedscope, BoundsTheMemoryThatAFileMayTake) {
  std::string events, closing;
  for (int at = 0; at < 2000; ++at) {
    events += fmt::format(R"({}{{"type":"O","frame":0,"at":{}}})", at == 0 ? "" : ",", at);
    closing += fmt::format(R"(,{{"type":"C","frame":0,"at":{}}})", 2000 + at);
  }
  const std::string text = R"({"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"evented","events":[)" +
                           events + closing + "]}]}";
  EXPECT_TRUE(decode_speedscope(text).ok());
  EXPECT_FALSE(decode_speedscope(text, {.memory_bytes = 2 << 20}).ok());
}

TEST(SpeedscopeTitle, IsReadAsItWasWritten) {
  for (const SpeedscopeTitle& title :
       {SpeedscopeTitle{"worker", "12", "app", "10", "cpu"}, SpeedscopeTitle{"", "12", "", "10", "cpu"},
        SpeedscopeTitle{"", "", "", "", "cpu"}, SpeedscopeTitle{"a b", "", "app", "", "page-faults"}}) {
    const SpeedscopeTitle again = parse_speedscope_title(speedscope_title(title));
    EXPECT_EQ(again.thread, title.thread);
    EXPECT_EQ(again.tid, title.tid);
    EXPECT_EQ(again.process, title.process);
    EXPECT_EQ(again.pid, title.pid);
    EXPECT_EQ(again.column, title.column);
    EXPECT_FALSE(again.is_sum);
  }
  EXPECT_TRUE(parse_speedscope_title("all threads · cpu").is_sum);
  EXPECT_EQ(parse_speedscope_title("anything").thread, "anything");
}

TEST(SpeedscopeTitle, IsTheProcessElseTheProgramElseAProfile) {
  const auto name_of = [](bool has_process, bool has_program) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
    if (has_program) builder.add_mapping({.limit = {0x1000}, .path = builder.intern("/usr/bin/app")});
    std::vector<ProfileLabel> labels;
    if (has_process) labels.push_back(builder.text_label(kProcessNameLabel, "shop"));
    builder.add_sample({{builder.add_named_location("main")}, {7}, labels});
    const std::string text = encode_speedscope(std::move(builder).build()).value();
    return text.substr(text.find("\"name\":"), 15);
  };
  EXPECT_THAT(name_of(true, true), ::testing::StartsWith("\"name\":\"shop\""));
  EXPECT_THAT(name_of(false, true), ::testing::StartsWith("\"name\":\"app\""));
  EXPECT_THAT(name_of(false, false), ::testing::StartsWith("\"name\":\"profil"));
}

}  // namespace
}  // namespace ddprof
