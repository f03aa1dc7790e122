#include "encode/viewer_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/firefox_categories.hpp"
#include "encode/firefox_tables.hpp"
#include "encode/profile_fixture.hpp"
#include "import/foreign_formats.hpp"
#include "import/json_document.hpp"
#include "profile/profile_builder.hpp"

// The shape of the file as a whole is checked by tests/formats/check_firefox.py.

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_data::column_names;
using testing_data::default_digest;
using testing_data::RichProfile;

TEST(Firefox, KeepsStacksThreadsAndTheDefaultColumnThroughARoundTrip) {
  const Profile profile = RichProfile().build();
  const Result<Profile> again = decode_firefox(encode_firefox(profile));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_THAT(column_names(*again), ElementsAre("cpu/nanoseconds"));
  EXPECT_EQ(default_digest(*again), default_digest(profile));
  EXPECT_EQ(again->text(again->comments.at(0)), "a \"comment\"");
  EXPECT_EQ(again->period, profile.period);
  EXPECT_EQ(again->duration_ns, profile.duration_ns);
}

TEST(Firefox, KeepsFilesLinesBuildIdsAndInlinedCallsThroughARoundTrip) {
  const Result<Profile> again = decode_firefox(encode_firefox(RichProfile().build()));
  ASSERT_TRUE(again.ok());
  const ProfileSample& sample = again->samples.at(0);
  const ProfileLocation& leaf = again->locations[sample.locations.at(0)];
  ASSERT_EQ(leaf.lines.size(), 3U) << "inlined calls share a location";
  EXPECT_EQ(leaf.lines[1].line, 5);
  EXPECT_EQ(leaf.lines[1].column, 7);
  const ProfileFunction& inlined = again->functions[leaf.lines[1].function];
  EXPECT_EQ(again->text(inlined.name), "scale<\"x\">");
  EXPECT_EQ(again->text(inlined.file), "app.cc");
  EXPECT_EQ(inlined.start_line, 4);
  const ProfileMapping& mapping = again->mappings.at(leaf.mapping);
  EXPECT_EQ(again->text(mapping.path), "/usr/bin/app");
  EXPECT_EQ(again->text(mapping.build_id), "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(leaf.address - mapping.start, 0x1123U) << "the offset in the file";
}

TEST(Firefox, LaysSamplesOutByTheirValuesWithoutTimes) {
  const std::string text = encode_firefox(RichProfile().build());
  EXPECT_THAT(text, HasSubstr("\"timeDeltas\":[0,2000],\"weight\":[2000,500],\"weightType\":\"tracing-ms\""));
}

TEST(Firefox, KeepsTheTimesOfSamplesThatHaveThem) {
  RichProfile rich;
  rich.profile().samples.clear();
  const std::int64_t start = rich.profile().time_ns;
  rich.add({rich.work(), rich.main()}, 1, 1, "t", "p", 1, start + 9'000'000);
  rich.add({rich.main()}, 1, 1, "t", "p", 1, start + 4'000'000);
  const Profile profile = std::move(rich).build();
  const std::string text = encode_firefox(profile);
  EXPECT_THAT(text, HasSubstr("\"timeDeltas\":[4,5]"));
  const Result<Profile> again = decode_firefox(text);
  ASSERT_TRUE(again.ok());
  ASSERT_EQ(again->samples.size(), 2U);
  EXPECT_EQ(label_text(*again, again->samples[1], kEndTimestampLabel), fmt::format("{}", start + 9'000'000));
}

// What samply writes, in its smallest form.
constexpr std::string_view kSamply = R"({
  "meta": {"preprocessedProfileVersion": VERSION, "product": "app", "startTime": 1000, "interval": 1},
  "libs": [{"name": "app", "path": "/bin/app", "debugName": "app", "breakpadId": "0", "codeId": "ab12"}],
  "shared": {
    "stringArray": ["main", "work", "app"],
    "stackTable": {"length": 3, "frame": [0, 1, 2], PREFIX},
    "frameTable": {"length": 3, "func": [0, 1, 1], "address": [16, 32, -1], "inlineDepth": [0, 0, 0], LIB
                   "line": [3, null, null], "column": [null, null, null]},
    "funcTable": {"length": 2, "name": [0, 1], "resource": [0, 0], "isJS": [false, false], "lineNumber": [null, null]},
    "resourceTable": {"length": 1, "name": [2], "lib": [0], "type": [1], "host": [null]}},
  "threads": [{"name": "app", "pid": "7", "tid": 8, "processName": "app", "isMainThread": false,
    "samples": {"length": 3, "stack": [1, 2, 1], "timeDeltas": [1, 2, 3], "weight": null, "weightType": "samples"}}]})";

std::string samply_profile(std::string_view version, std::string_view prefix, std::string_view lib) {
  std::string text(kSamply);
  text.replace(text.find("VERSION"), 7, version);
  text.replace(text.find("PREFIX"), 6, prefix);
  text.replace(text.find("LIB"), 3, lib);
  return text;
}

TEST(Firefox, ReadsTheVersionsOfOtherProfilers) {
  for (const std::string& text :
       {samply_profile("60", R"("prefix": [null, 0, 0])", ""),
        samply_profile("66", R"("prefixOffset": [0, 1, 2])", ""),
        samply_profile("70", R"("prefixOffset": [0, 1, 2])", R"("lib": [0, 0, -1],)")}) {
    const Result<Profile> profile = decode_firefox(text);
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_THAT(column_names(*profile), ElementsAre("samples/count"));
    EXPECT_EQ(testing_data::digest(*profile), (testing_data::Digest{{"main;work in app 8 of app 7", {3}}}));
    EXPECT_EQ(label_text(*profile, profile->samples[2], kEndTimestampLabel), "1006000000");
    const ProfileLocation& leaf = profile->locations[profile->samples[0].locations[0]];
    EXPECT_EQ(profile->text(profile->mappings.at(leaf.mapping).build_id), "ab12");
    const ProfileMapping& mapping = profile->mappings[leaf.mapping];
    EXPECT_EQ(leaf.address - mapping.start, 32U);
    EXPECT_EQ(mapping.limit - mapping.start, 4096U) << "the page that all addresses are in";
  }
}

TEST(Firefox, SaysWhatIsWrongWithABadFile) {
  const auto message = [](std::string text) {
    const Result<Profile> profile = decode_firefox(text);
    return profile.ok() ? std::string("fine") : profile.error().message;
  };
  EXPECT_THAT(message(samply_profile("59", R"("prefix": [null, 0, 0])", "")), HasSubstr("version 59"));
  EXPECT_THAT(message(samply_profile("71", R"("prefix": [null, 0, 0])", "")), HasSubstr("version 71"));
  EXPECT_THAT(message(samply_profile("66", R"("prefix": [null, 2, 0])", "")), HasSubstr("before its parent"));
  EXPECT_THAT(message(samply_profile("66", R"("prefixOffset": [1, 1, 1])", "")), HasSubstr("does not exist"));
  EXPECT_THAT(message(samply_profile("66", R"("prefixOffset": [0, 1])", "")), HasSubstr("no prefixes"));
  std::string text = samply_profile("66", R"("prefixOffset": [0, 1, 2])", "");
  text.replace(text.find("\"stack\": [1, 2, 1]"), 18, "\"stack\": [1, 3, 1]");
  EXPECT_THAT(message(text), HasSubstr("stack that does not exist"));
  EXPECT_THAT(message("{}"), HasSubstr("no meta"));
}

TEST(Firefox, TheOutermostOfInlinedCallsHasDepthZero) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  const std::vector<ProfileLine> lines = {{builder.add_function("inner"), 7, 0},
                                          {builder.add_function("middle"), 8, 0},
                                          {builder.add_function("outer"), 9, 0}};
  builder.add_sample({{builder.add_location(kNoMapping, Address{16}, lines)}, {1}, {}});
  EXPECT_THAT(encode_firefox(std::move(builder).build()), HasSubstr("\"inlineDepth\":[2,1,0]"));
}

TEST(Firefox, ShowsAsManyThreadsAtFirstAsThereAreAndTwelveAtMost) {
  const auto shown_of = [](std::int64_t threads) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
    for (std::int64_t tid = 1; tid <= threads; ++tid)
      builder.add_sample(
          {{builder.add_named_location("main")}, {100 - tid}, {builder.number_label(kThreadIdLabel, tid)}});
    return encode_firefox(std::move(builder).build());
  };
  EXPECT_THAT(shown_of(1), HasSubstr("\"initialVisibleThreads\":[0]"));
  EXPECT_THAT(shown_of(2), HasSubstr("\"initialVisibleThreads\":[0,1]"));
  EXPECT_THAT(shown_of(14), HasSubstr("\"initialVisibleThreads\":[0,1,2,3,4,5,6,7,8,9,10,11]"));
}

TEST(Firefox, PutsFramesIntoCategories) {
  EXPECT_EQ(firefox_category("/usr/bin/app", "main", false), FirefoxCategory::user);
  EXPECT_EQ(firefox_category("[kernel.kallsyms]", "sys_read", false), FirefoxCategory::kernel);
  EXPECT_EQ(firefox_category("[anonymous code]", "lambda", false), FirefoxCategory::jit);
  EXPECT_EQ(firefox_category("", "sys_read_[k]", false), FirefoxCategory::kernel);
  EXPECT_EQ(firefox_category("", "[lost]", true), FirefoxCategory::marker);
}

TEST(BreakpadId, ReadsTheBuildIdAsALittleEndianGuid) {
  EXPECT_EQ(breakpad_id("0123456789abcdef0123456789abcdef01234567"), "67452301AB89EFCD0123456789ABCDEF0");
  EXPECT_EQ(breakpad_id("ab"), "000000AB0000000000000000000000000");
  EXPECT_EQ(breakpad_id(""), std::string(33, '0'));
}

TEST(Firefox, AThreadIsANumberWhereItHasOne) {
  const auto text_with = [](bool has_thread) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
    std::vector<ProfileLabel> labels;
    if (has_thread) labels.push_back(builder.number_label(kThreadIdLabel, 77));
    builder.add_sample({{builder.add_named_location("main")}, {7}, labels});
    return encode_firefox(std::move(builder).build());
  };
  EXPECT_THAT(text_with(true), HasSubstr("\"tid\":77,"));
  EXPECT_THAT(text_with(false), HasSubstr("\"tid\":\"\","));
}

// The text of a profile of one sample in a thread and a process.
std::string firefox_thread(std::string_view tid, std::string_view pid,
                           std::string_view unit = "nanoseconds") {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("value", unit)};
  builder.profile().duration_ns = 3'000'000;
  std::vector<ProfileLabel> labels = {builder.text_label(kThreadIdLabel, tid),
                                      builder.text_label(kProcessIdLabel, pid)};
  builder.add_sample({{builder.add_named_location("main")}, {2'000'000}, labels});
  builder.add_sample({{builder.add_named_location("other")}, {1'000'000}, labels});
  return encode_firefox(std::move(builder).build());
}

TEST(Firefox, ANumberOfAThreadHasDigitsOnlyAndNotTooMany) {
  EXPECT_THAT(firefox_thread("123456789012345", "1"), HasSubstr("\"tid\":123456789012345,"));
  EXPECT_THAT(firefox_thread("1234567890123456", "1"), HasSubstr("\"tid\":\"1234567890123456\","));
  EXPECT_THAT(firefox_thread("7x", "1"), HasSubstr("\"tid\":\"7x\","));
}

TEST(Firefox, TheMainThreadHasTheNumberOfItsProcess) {
  EXPECT_THAT(firefox_thread("7", "7"), HasSubstr("\"isMainThread\":true"));
  EXPECT_THAT(firefox_thread("8", "7"), HasSubstr("\"isMainThread\":false"));
}

TEST(Firefox, WeightsHaveTheUnitThatFits) {
  EXPECT_THAT(firefox_thread("7", "7"),
              HasSubstr("\"timeDeltas\":[0,2],\"weight\":[2,1],\"weightType\":\"tracing-ms\""));
  EXPECT_THAT(firefox_thread("7", "7", "bytes"),
              HasSubstr("\"timeDeltas\":[0,2],\"weight\":[2000000,1000000],\"weightType\":\"bytes\""))
      << "they share the duration";
  EXPECT_THAT(firefox_thread("7", "7", "count"), HasSubstr("\"weightType\":\"samples\""));
}

}  // namespace
}  // namespace ddprof
