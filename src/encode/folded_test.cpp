#include "encode/viewer_formats.hpp"

#include <gtest/gtest.h>

#include "encode/escaped_text.hpp"
#include "encode/output_format.hpp"
#include "encode/profile_fixture.hpp"
#include "import/foreign_formats.hpp"

namespace ddprof {
namespace {

TEST(Folded, WritesRootFirstWithInlinedCallsAndWithoutSemicolonsInNames) {
  EXPECT_EQ(encode_folded(testing_data::sample_profile()),
            "# value: cpu nanoseconds 0\n"
            "app;main;libc.so.6+0x1234 1000000000\n"
            "app;main;work();add(int: int) 2000000000\n");
}

TEST(Folded, MergesStacksThatLookTheSame) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const std::uint32_t function = builder.add_function("main");
  const ProfileLine line{function, 0};
  for (std::uint64_t address : {0x10U, 0x20U}) {
    const std::uint32_t location = builder.add_location(kNoMapping, {address}, std::span(&line, 1));
    builder.add_sample({{location}, {3}, {builder.text_label(kProcessNameLabel, "a\nb")}});
  }
  EXPECT_EQ(encode_folded(std::move(builder).build()), "# value: samples count 0\na b;main 6\n");
}

TEST(Folded, NamesTheProcessAfterItsProgramWhenThereIsNoLabel) {
  Profile profile = testing_data::sample_profile();
  for (ProfileSample& sample : profile.samples) sample.labels.clear();
  EXPECT_NE(encode_folded(profile).find("\napp;main;"), std::string::npos);
  EXPECT_EQ(encode_folded(Profile{}), "");
}

std::string column_of(std::string_view text) {
  const Result<Profile> profile = decode_folded(text);
  if (!profile || profile->value_types.size() != 1) return "no column";
  return std::string(profile->text(profile->value_types[0].type)) + "/" +
         std::string(profile->text(profile->value_types[0].unit));
}

TEST(Folded, KnowsWhatItsOwnNumbersAre) {
  const Profile original = testing_data::sample_profile();
  const Result<Profile> again = decode_folded(encode_folded(original));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->samples.size(), 2U);
  EXPECT_EQ(column_of(encode_folded(original)), "cpu/nanoseconds");
}

TEST(Folded, ClaimsNothingOfTheNumbersOfOthers) {
  EXPECT_EQ(column_of("main;work 12\n"), "value/");
  for (const std::string_view first : {"# value: cpu 0", "# value: cpu nanoseconds", "# value:  0",
                                       "# value: 0", "# value: a b c 0", "# value: cpu nanoseconds 1"})
    EXPECT_EQ(column_of(std::string(first) + "\nmain;work 12\n"), "value/") << first;
}

TEST(Folded, EveryLineIsAStackAndItsCount) {
  const std::string text = encode_folded(testing_data::sample_profile());
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const std::size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos);
    EXPECT_EQ(line.find_first_not_of("0123456789", space + 1), std::string::npos) << line;
  }
}

TEST(Folded, WritesNoUnitThatIsNoWord) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("CPU time", "ns")};
  builder.add_sample({{builder.add_named_location("main")}, {3}, {}});
  EXPECT_EQ(encode_folded(std::move(builder).build()), "main 3\n");
}

TEST(OutputFormat, IsChosenByExtension) {
  EXPECT_EQ(output_format("a/b.pb.gz").value(), OutputFormat::pprof_gzip);
  EXPECT_EQ(output_format("b.pprof").value(), OutputFormat::pprof_gzip);
  EXPECT_EQ(output_format("b.pb").value(), OutputFormat::pprof);
  EXPECT_EQ(output_format("b.folded").value(), OutputFormat::folded);
  EXPECT_EQ(output_format("b.collapsed").value(), OutputFormat::folded);
  EXPECT_EQ(output_format("b.txt").value(), OutputFormat::folded);
  EXPECT_EQ(output_format("b.svg").value(), OutputFormat::svg);
  EXPECT_EQ(output_format_by_name("svg").value(), OutputFormat::svg);
}

TEST(OutputFormat, NamesTheKnownOnesForAnUnknownExtension) {
  const Result<OutputFormat> format = output_format("profile.bmp");
  ASSERT_FALSE(format.ok());
  EXPECT_EQ(format.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(format.error().hint.find(".pb.gz"), std::string::npos);
  EXPECT_NE(format.error().hint.find(".folded"), std::string::npos);
  EXPECT_TRUE(format.error().hint.ends_with(", .svg"));
  EXPECT_TRUE(output_extensions().ends_with(" .svg"));
}

TEST(OutputFormat, EncodesEachFormat) {
  const Profile profile = testing_data::sample_profile();
  EXPECT_TRUE(encode(profile, OutputFormat::pprof_gzip).value().starts_with("\x1f\x8b"));
  EXPECT_TRUE(encode(profile, OutputFormat::pprof).value().starts_with("\x0a\x04"));
  EXPECT_TRUE(encode(profile, OutputFormat::folded).value().starts_with("# value: cpu nanoseconds 0\napp;"));
  EXPECT_TRUE(encode(profile, OutputFormat::svg).value().starts_with("<svg "));
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndCutSequences) {
  EXPECT_TRUE(is_utf8("plain é € 😀"));
  for (std::string_view bad :
       {"\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff", "\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_TRUE(is_utf8(to_utf8(bad)));
  }
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace ddprof
