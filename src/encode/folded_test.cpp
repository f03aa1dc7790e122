#include "encode/folded.hpp"

#include <gtest/gtest.h>

#include "encode/output_format.hpp"
#include "encode/sample_profile.hpp"
#include "encode/utf8.hpp"

namespace ddprof {
namespace {

TEST(Folded, WritesRootFirstWithInlinedCallsAndWithoutSemicolonsInNames) {
  EXPECT_EQ(encode_folded(testing_data::sample_profile()),
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
  EXPECT_EQ(encode_folded(std::move(builder).build()), "a b;main 6\n");
}

TEST(Folded, NamesTheProcessAfterItsProgramWhenThereIsNoLabel) {
  Profile profile = testing_data::sample_profile();
  for (ProfileSample& sample : profile.samples) sample.labels.clear();
  EXPECT_TRUE(encode_folded(profile).starts_with("app;main;"));
  EXPECT_EQ(encode_folded(Profile{}), "");
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
  EXPECT_TRUE(encode(profile, OutputFormat::folded).value().starts_with("app;"));
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
