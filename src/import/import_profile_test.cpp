#include "import/import_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/compression.hpp"
#include "encode/output_format.hpp"
#include "encode/pprof.hpp"
#include "encode/profile_fixture.hpp"
#include "encode/viewer_formats.hpp"

namespace ddprof {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_data::column_names;
using testing_data::default_digest;
using testing_data::Digest;
using testing_data::RichProfile;

Result<Profile> decode_any(std::string_view bytes) {
  return import_profile(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string message_of(std::string_view bytes) {
  const Result<Profile> profile = decode_any(bytes);
  return profile.ok() ? "fine" : profile.error().message;
}

// What each format holds: all columns and threads, or less.
TEST(Decode, ReadsEveryFormatThatIsWritten) {
  const Profile profile = RichProfile().build();
  for (const OutputFormat format :
       {OutputFormat::pprof, OutputFormat::pprof_gzip, OutputFormat::speedscope}) {
    const Result<Profile> again = decode_any(encode(profile, format).value());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(column_names(*again), column_names(profile));
    EXPECT_EQ(testing_data::digest(*again), testing_data::digest(profile));
  }
  for (const OutputFormat format : {OutputFormat::firefox, OutputFormat::firefox_gzip}) {
    const Result<Profile> again = decode_any(encode(profile, format).value());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(default_digest(*again), default_digest(profile));
  }
}

TEST(Decode, ReadsFoldedStacksThatItWrote) {
  const std::string text = encode_folded(RichProfile().build());
  const Result<Profile> again = decode_any(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(encode_folded(*again), text);
  EXPECT_THAT(column_names(*again), ElementsAre("cpu/nanoseconds"));
}

TEST(Decode, ReadsFoldedStacksOfOthers) {
  const Result<Profile> profile = decode_any(
      "[worker 1 tid=12];java/lang/Thread.run_[j];a b 3\r\n"
      "# a comment\n"
      "main 4\n\n"
      "main 1\n");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(testing_data::digest(*profile),
            (Digest{{"java/lang/Thread.run_[j];a b in worker 1 12 of  ", {3}}, {"main in   of  ", {5}}}));
}

TEST(Decode, KeepsFractionsOfFoldedCounts) {
  const Result<Profile> profile = decode_any("a 0.25\nb 3\n");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->samples.at(0).values.at(0), 25);
  EXPECT_EQ(profile->samples.at(1).values.at(0), 300);
  EXPECT_THAT(profile->text(profile->comments.at(0)), HasSubstr("multiplied by 100"));
}

TEST(Decode, SaysWhatAFileIsThatItCannotRead) {
  EXPECT_THAT(message_of("\x28\xb5\x2f\xfd"
                         "abc"sv),
              HasSubstr("zstd"));
  EXPECT_THAT(message_of("PERFILE2\x01\x02"sv), HasSubstr("perf"));
  EXPECT_THAT(message_of("\x7f"
                         "ELF\x02"sv),
              HasSubstr("a program"));
  EXPECT_THAT(message_of("FLR\0\x01"sv), HasSubstr("Flight Recorder"));
  EXPECT_THAT(message_of(""), HasSubstr("empty"));
  EXPECT_THAT(message_of(" \n"), HasSubstr("empty"));
  EXPECT_THAT(message_of("{\"a\":1}"), HasSubstr("neither of speedscope nor"));
  EXPECT_THAT(message_of("hello, this is no profile\n"), HasSubstr("line 1 is no folded stack"));
  EXPECT_THAT(message_of("\x01\x02garbage"sv), HasSubstr("read pprof"));
}

TEST(Decode, ReadsAnyFormatGzipped) {
  EXPECT_EQ(message_of(gzip("main;work 5\n").value()), "fine");
  EXPECT_EQ(message_of(gzip("heap_v2/1\n@ 0x10\n t*: 1: 2 [0: 0]\n").value()), "fine");
}

TEST(Decode, KeepsColumnsOfLinesAndTheDocumentationOfPprof) {
  RichProfile rich;
  rich.profile().strings.emplace_back("https://example.com/cpu");
  rich.profile().doc_url = static_cast<StringIndex>(rich.profile().strings.size() - 1);
  const Profile profile = std::move(rich).build();
  const std::string bytes = encode_pprof(profile);
  const Result<Profile> again = decode_any(bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->text(again->doc_url), "https://example.com/cpu");
  EXPECT_EQ(again->locations[0].lines[0].column, profile.locations[0].lines[0].column);
  EXPECT_NE(again->locations[0].lines[0].column, 0);
  EXPECT_EQ(encode_pprof(*again), bytes);
}

TEST(OutputFormat, SaysWhichExtensionWasProbablyMeant) {
  const auto message = [](std::string_view path) { return output_format(path).error().message; };
  EXPECT_THAT(message("a/b.speedscop.json"), HasSubstr("did you mean .speedscope.json?"));
  EXPECT_THAT(message("my.program.folde"), HasSubstr("did you mean .folded?"));
  EXPECT_THAT(message("cpu.pporf"), HasSubstr("did you mean .pprof?"));
  EXPECT_THAT(message("cpu.json"), HasSubstr("did you mean .speedscope.json or .firefox.json?"));
  EXPECT_THAT(output_format_by_name("firefx").error().message, HasSubstr("did you mean firefox?"));
}

TEST(OutputFormat, RefusesToWriteOutWhatOnlySharingMakesSmall) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const std::vector<ProfileLine> lines(1 << 16, ProfileLine{builder.add_function("f"), 1});
  const std::uint32_t location = builder.add_location(kNoMapping, {1}, lines);
  builder.add_sample({std::vector<std::uint32_t>(1 << 13, location), {1}, {}});
  const Profile profile = std::move(builder).build();
  EXPECT_THAT(encode(profile, OutputFormat::folded).error().message, HasSubstr("frames"));
  EXPECT_TRUE(encode(profile, OutputFormat::pprof).ok());
}

}  // namespace
}  // namespace ddprof
