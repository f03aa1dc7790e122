#include "encode/otlp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/compression.hpp"
#include "encode/otlp_dictionary.hpp"
#include "encode/otlp_samples.hpp"
#include "encode/output_format.hpp"
#include "encode/pprof.hpp"
#include "encode/profile_fixture.hpp"
#include "import/import_profile.hpp"

namespace ddprof {
namespace {

using ::testing::HasSubstr;
using testing_data::sample_profile;

std::string refusal_of(std::string_view bytes) {
  const Result<Profile> profile = import_profile(std::as_bytes(std::span(bytes)));
  return profile.ok() ? "fine" : profile.error().message;
}

TEST(Otlp, IsRecognisedAndNotRead) {
  const std::string bytes = encode(sample_profile(), OutputFormat::otlp).value();
  EXPECT_TRUE(is_otlp(bytes));
  EXPECT_THAT(refusal_of(bytes), HasSubstr("OTLP profiles, which are only written"));
  EXPECT_THAT(refusal_of(gzip(bytes).value()), HasSubstr("OTLP profiles"));
}

TEST(Otlp, IsNotWhatPprofIs) {
  EXPECT_FALSE(is_otlp(encode_pprof(sample_profile())));
  EXPECT_FALSE(is_otlp(""));
  EXPECT_FALSE(is_otlp("\x12\x06short"));
}

TEST(Otlp, IsNotWhatIsLeftOfACutPprof) {
  // Two columns and a sample: then come the tables, which both formats need.
  constexpr std::string_view kCut(
      "\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x12\x07\x0a\x01\x01\x12\x02\x03\x04", 21);
  EXPECT_FALSE(is_otlp(kCut));
  EXPECT_THAT(refusal_of(kCut), HasSubstr("read pprof"));
}

TEST(Otlp, IsChosenByExtensionAndByName) {
  EXPECT_EQ(output_format("cpu.otlp").value(), OutputFormat::otlp);
  EXPECT_EQ(output_format_by_name("otlp").value(), OutputFormat::otlp);
}

TEST(Otlp, LinksSamplesToTheirSpansAndMarksWhatThreadsMadeUp) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  for (const char* trace :
       {"000102030405060708090a0b0c0d0e0f", "not a trace", "0001020304050607080g0a0b0c0d0e0f"}) {
    builder.add_sample({{},
                        {10},
                        {builder.number_label(kSpanIdLabel, 0x1112131415161718),
                         builder.text_label(kTraceIdLabel, trace), builder.text_label("customer", "gold")}});
  }
  builder.profile().context_keys = {builder.intern("customer")};
  const std::string bytes = encode_otlp(std::move(builder).build(), {});
  constexpr std::string_view kLink(
      "\x0a\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x12\x08\x11\x12\x13\x14\x15"
      "\x16\x17\x18",
      28);
  EXPECT_THAT(bytes, HasSubstr(std::string(kLink)));
  EXPECT_THAT(bytes, HasSubstr("process.context.label.customer"));
  EXPECT_THAT(bytes, HasSubstr("not a trace"));  // stays a label
  EXPECT_THAT(bytes, HasSubstr("0001020304050607080g0a0b0c0d0e0f"));
}

// Growing in steps would need up to three times the bytes.
TEST(Otlp, ReservesAboutTheMemoryThatItNeeds) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  for (std::uint32_t at = 0; at < 2000; ++at) builder.add_named_location("function " + std::to_string(at));
  for (std::uint32_t at = 0; at < 10'000; ++at) {
    ProfileSample sample{{}, {1 + at % 3, 10'000'000}, {builder.number_label(kThreadIdLabel, at % 64)}};
    for (std::uint32_t frame = 0; frame < 40; ++frame)
      sample.locations.push_back((at * (frame / 8 + 1) + frame) % 2000);
    if (at % 2 == 0) sample.labels.push_back(builder.number_label(kEndTimestampLabel, 1000 + at));
    builder.add_sample(std::move(sample));
  }
  const std::string bytes = encode_otlp(std::move(builder).build(), {});
  EXPECT_LT(bytes.capacity(), bytes.size() * 3 / 2);
}

TEST(Otlp, RefusesToRepeatLabelsWithoutEnd) {
  Profile profile;
  profile.value_types.resize(1 << 14);
  profile.samples = {{{}, std::vector<std::int64_t>(1 << 14, 1), std::vector<ProfileLabel>(1 << 15)}};
  EXPECT_THAT(encode(profile, OutputFormat::otlp).error().message, HasSubstr("labels"));
  EXPECT_TRUE(encode(profile, OutputFormat::pprof).ok());
}

TEST(Otlp, SharesWhatIsTooLongOrTooMuchForResources) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const std::string name(kMaxOtlpResourceText + 1, 'x');
  for (std::uint32_t pid = 0; pid < 2 * kMaxOtlpProcesses; ++pid) {
    builder.add_sample(
        {{}, {1}, {builder.number_label(kProcessIdLabel, pid), builder.text_label(kServiceLabel, name)}});
  }
  // Each of the first 4096 processes costs its resource and scope, a few hundred bytes; the long name is
  // there once.
  EXPECT_LT(encode_otlp(std::move(builder).build(), {}).size(), 500 * kMaxOtlpProcesses);
}

TEST(OtlpAttribute, HasTheNamesOfOpenTelemetry) {
  EXPECT_EQ(otlp_label_name(kThreadIdLabel).attribute, "thread.id");
  EXPECT_TRUE(otlp_label_name(kContainerIdLabel).is_of_process);
  EXPECT_EQ(otlp_label_name("request").attribute, "request");
  EXPECT_EQ(otlp_unit("bytes"), "By");
  EXPECT_EQ(otlp_unit("furlongs"), "furlongs");
}

TEST(OtlpAttribute, KnowsKindsOfCodeByTheirFile) {
  EXPECT_EQ(otlp_frame_type("/usr/lib/libc.so.6"), "native");
  EXPECT_EQ(otlp_frame_type("[kernel.kallsyms]"), "kernel");
  EXPECT_EQ(otlp_frame_type("/lib/modules/6.1/ext4.ko"), "kernel");
  EXPECT_EQ(otlp_frame_type("[anonymous code]"), "");
  EXPECT_EQ(otlp_frame_type(""), "");
}

TEST(OtlpAttribute, TellsBuildIdsOfGoFromOthers) {
  EXPECT_EQ(otlp_build_id_key("0123abcd"), "process.executable.build_id.gnu");
  EXPECT_EQ(otlp_build_id_key("Tq0/x-_1"), "process.executable.build_id.go");
}

}  // namespace
}  // namespace ddprof
