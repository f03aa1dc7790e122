#include "encode/pprof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string_view>

#include "encode/compression.hpp"
#include "encode/profile_fixture.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {
namespace {

using namespace std::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One sample, work <- main, decoded by `go tool pprof -raw` when it was made.
constexpr std::string_view kGoldenHex =
    "0a04080110020a040803100412110a020102120503b6c6b90e1a04080b100c1a"
    "19080110808080021880a0800220802028053006380140014801220f08011001"
    "18a382800222040801100c220f0802100118d68880022204080210222a0a0801"
    "100718082009280a2a0a0802100a180a2009281e3200320b6370752d73616d70"
    "6c65733205636f756e7432086370752d74696d65320b6e616e6f7365636f6e64"
    "73320c2f7573722f62696e2f617070320830313233616263643204776f726b32"
    "085f5a34776f726b7632066170702e636332046d61696e320974687265616420"
    "6964320434323432488080a8b1e39fe7cb175080b09dc2df015a040803100460"
    "92c2e8047003";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

Result<Profile> decode(std::string_view bytes, const DecodeLimits& limits = {}) {
  return decode_pprof(std::as_bytes(std::span(bytes.data(), bytes.size())), limits);
}

void expect_corrupt(std::string_view bytes, std::string_view reason) {
  const Result<Profile> profile = decode(bytes);
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, ErrorCode::corrupt);
  EXPECT_THAT(profile.error().message, HasSubstr(std::string(reason)));
}

TEST(Pprof, DecodesTheGoldenVector) {
  const Result<Profile> decoded = decode(from_hex(kGoldenHex));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  const Profile& profile = *decoded;
  ASSERT_EQ(profile.value_types.size(), 2U);
  EXPECT_EQ(profile.text(profile.value_types[0].type), "cpu-samples");
  EXPECT_EQ(profile.text(profile.value_types[1].unit), "nanoseconds");
  EXPECT_EQ(default_column(profile), 1U);
  EXPECT_EQ(profile.time_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(profile.duration_ns, 60'000'000'000);
  EXPECT_EQ(profile.period, 10'101'010);

  ASSERT_EQ(profile.mappings.size(), 1U);
  const ProfileMapping& mapping = profile.mappings[0];
  EXPECT_EQ(mapping.start.value, 0x400000U);
  EXPECT_EQ(mapping.limit.value, 0x401000U);
  EXPECT_EQ(mapping.file_offset, 0x1000U);
  EXPECT_EQ(profile.text(mapping.path), "/usr/bin/app");
  EXPECT_EQ(profile.text(mapping.build_id), "0123abcd");
  EXPECT_TRUE(mapping.has_functions && mapping.has_filenames && mapping.has_lines);
  EXPECT_FALSE(mapping.has_inlines);

  ASSERT_EQ(profile.samples.size(), 1U);
  const ProfileSample& sample = profile.samples[0];
  EXPECT_THAT(sample.values, ElementsAre(3, 30'303'030));
  EXPECT_EQ(label_text(profile, sample, "thread id"), "4242");
  ASSERT_EQ(sample.locations.size(), 2U);
  const ProfileLocation& leaf = profile.locations[sample.locations[0]];
  const ProfileLocation& root = profile.locations[sample.locations[1]];
  EXPECT_EQ(leaf.address.value, 0x400123U);
  EXPECT_EQ(root.address.value, 0x400456U);
  ASSERT_EQ(leaf.lines.size(), 1U);
  EXPECT_EQ(leaf.lines[0].line, 12);
  const ProfileFunction& work = profile.functions[leaf.lines[0].function];
  EXPECT_EQ(profile.text(work.name), "work");
  EXPECT_EQ(profile.text(work.system_name), "_Z4workv");
  EXPECT_EQ(profile.text(work.file), "app.cc");
  EXPECT_EQ(work.start_line, 10);
  EXPECT_EQ(profile.text(profile.functions[root.lines.at(0).function].name), "main");
}

TEST(Pprof, EncodesTheGoldenProfileToTheSameBytes) {
  const std::string golden = from_hex(kGoldenHex);
  const Result<Profile> profile = decode(golden);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(encode_pprof(*profile), golden);
}

TEST(Pprof, KeepsEverythingThroughARoundTripAndGzip) {
  const Profile profile = testing_data::sample_profile();
  const std::string bytes = encode_pprof(profile);
  const Result<std::string> compressed = gzip(bytes);
  ASSERT_TRUE(compressed.ok());
  const Result<Profile> decoded = decode(*compressed);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(encode_pprof(*decoded), bytes);
  EXPECT_EQ(decoded->strings, profile.strings);
  EXPECT_EQ(decoded->samples[0].values, profile.samples[0].values);
  EXPECT_EQ(decoded->samples[1].locations, profile.samples[1].locations);
  ASSERT_EQ(decoded->locations[0].lines.size(), 2U);
  EXPECT_EQ(decoded->text(decoded->comments.at(0)), "a comment");
}

TEST(Pprof, KeepsNegativeValuesForDiffs) {
  Profile profile = testing_data::sample_profile();
  profile.samples[0].values = {-1, std::numeric_limits<std::int64_t>::min()};
  const Result<Profile> decoded = decode(encode_pprof(profile));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->samples[0].values, profile.samples[0].values);
}

TEST(Pprof, KeepsColumnsWithoutAName) {
  Profile profile;
  profile.value_types.resize(2);
  profile.samples.push_back({{}, {1, 2}, {}});
  const Result<Profile> decoded = decode(encode_pprof(profile));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->value_types.size(), 2U);
}

TEST(Pprof, WritesNamesThatAreNotUtf8AsUtf8) {
  ProfileBuilder builder;
  builder.add_named_location("caf\xe9");
  const Result<Profile> decoded = decode(encode_pprof(std::move(builder).build()));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->text(decoded->functions[0].name), "caf\xef\xbf\xbd");
}

TEST(Pprof, AcceptsSparseIdsAndTablesThatComeLast) {
  // sample(location 500, value 1), location 500 -> function 70, function 70 named string 1, sample_type(1,
  // 1), strings.
  const std::string bytes = "\x12\x07\x0a\x02\xf4\x03\x12\x01\x01"s +
                            "\x22\x07\x08\xf4\x03\x22\x02\x08\x46"s + "\x2a\x04\x08\x46\x10\x01"s +
                            "\x0a\x04\x08\x01\x10\x01"s + "\x32\x00\x32\x01x"s;
  const Result<Profile> decoded = decode(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->text(decoded->functions[decoded->locations[0].lines[0].function].name), "x");
}

TEST(Pprof, KeepsNumbersOfEveryLength) {
  Profile profile = testing_data::sample_profile();
  profile.value_types.resize(1);
  profile.samples.resize(1);
  for (const std::int64_t value : {0L, 1L, 127L, 128L, 16'383L, 16'384L, 2'097'151L, 2'097'152L, 1L << 40,
                                   std::numeric_limits<long>::max(), -1L}) {
    profile.samples[0].values = {value};
    const Result<Profile> decoded = decode(encode_pprof(profile));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_THAT(decoded->samples[0].values, ElementsAre(value));
  }
}

TEST(Pprof, FindsManyLocationsByIdInAnyOrder) {
  // Ids that count from 1, and the same backwards.
  for (const bool is_backwards : {false, true}) {
    const int count = 20'000;
    std::string bytes = "\x32\x00\x0a\x00"s, ids;
    const auto varint = [](unsigned number) {
      std::string text;
      for (; number > 127; number >>= 7U) text += static_cast<char>((number & 127U) | 128U);
      return text + static_cast<char>(number);
    };
    for (int number = 1; number <= count; ++number) {
      const auto id = static_cast<unsigned>(is_backwards ? count + 1 - number : number);
      const std::string location = "\x08" + varint(id) + "\x18" + varint(static_cast<unsigned>(number));
      bytes += "\x22" + varint(static_cast<unsigned>(location.size())) + location;
      ids += varint(id);
    }
    const std::string sample = "\x0a" + varint(static_cast<unsigned>(ids.size())) + ids + "\x12\x01\x05";
    bytes += "\x12" + varint(static_cast<unsigned>(sample.size())) + sample;
    const Result<Profile> decoded = decode(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    ASSERT_EQ(decoded->samples[0].locations.size(), static_cast<std::size_t>(count));
    for (std::uint32_t at = 0; at < static_cast<std::uint32_t>(count); ++at)
      ASSERT_EQ(decoded->locations[decoded->samples[0].locations[at]].address.value, at + 1U);
  }
}

TEST(Pprof, SkipsUnknownFieldsOfEveryWireType) {
  const std::string unknown =
      "\xa0\x06\x01\xa1\x06"
      "12345678"
      "\xa2\x06\x02zz\xa5\x06"
      "1234"s;
  const Result<Profile> decoded = decode(unknown + from_hex(kGoldenHex) + unknown);
  EXPECT_TRUE(decoded.ok());
}

TEST(Pprof, RefusesEveryDanglingReference) {
  const std::string strings = "\x32\x00"s;
  expect_corrupt("", "there is nothing in it");
  expect_corrupt("\x32\x01x"s, "string table");
  expect_corrupt(strings + "\x0a\x02\x08\x01", "string 1 of 1");
  expect_corrupt(strings + "\x12\x03\x0a\x01\x01", "no location has id 1");
  expect_corrupt(strings + "\x22\x04\x08\x01\x10\x05", "no mapping has id 5");
  expect_corrupt(strings + "\x22\x06\x08\x01\x22\x02\x08\x03", "no function has id 3");
  expect_corrupt(strings + "\x12\x03\x12\x01\x01", "1 values for 0 columns");
  expect_corrupt(strings + "\x1a\x02\x08\x01\x1a\x02\x08\x01", "used twice");
  expect_corrupt(strings + "\x1a\x02\x10\x01", "id 0");
  expect_corrupt(strings + "\x6a\x01\x09", "string 9 of 1");
  expect_corrupt(strings + "\x70\x80\x80\x80\x80\x10", "string 4294967296 of 1");
  expect_corrupt("\x32\x05x"s, "malformed");
}

TEST(Pprof, GivesAnErrorOrAUsableProfileForEveryCutAndEveryFlippedByte) {
  const std::string golden = from_hex(kGoldenHex);
  for (std::size_t length = 0; length < golden.size(); ++length) {
    const Result<Profile> profile = decode(std::string_view(golden).substr(0, length));
    if (profile.ok()) (void)FrameTable(*profile);
  }
  std::mt19937 random(3);  // NOLINT: repeatable
  for (int turn = 0; turn < 5000; ++turn) {
    std::string bytes = golden;
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<Profile> profile = decode(bytes);
    if (profile.ok()) {
      EXPECT_FALSE(encode_pprof(*profile).empty());
      (void)FrameTable(*profile);
    } else {
      EXPECT_EQ(profile.error().code, ErrorCode::corrupt);
    }
  }
}

TEST(Pprof, BoundsTheMemoryThatAProfileMayTake) {
  std::string bytes = "\x32\x00"s;
  for (int sample = 0; sample < 10000; ++sample) bytes += "\x12\x00"s;
  EXPECT_TRUE(decode(bytes).ok());
  EXPECT_FALSE(decode(bytes, {.memory_bytes = 100'000}).ok());
}

TEST(Pprof, StopsInflatingABomb) {
  const Result<std::string> bomb = gzip(std::string(10'000'000, '\0'));
  ASSERT_TRUE(bomb.ok());
  const Result<Profile> profile = decode(*bomb, {.inflated_bytes = 1'000'000});
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, ErrorCode::corrupt);
}

TEST(Pprof, SkipsUnknownFieldsInEveryMessage) {
  const auto message = [](char tag, const std::string& known) {
    const std::string content = "\xa0\x06\x01\xa2\x06\x02zz"s + known;
    return std::string{tag, static_cast<char>(content.size())} + content;
  };
  const std::string bytes =
      message('\x0a', "\x08\x01\x10\x02") +                                                // column
      message('\x12', "\x0a\x01\x01\x12\x01\x05" + message('\x1a', "\x08\x03\x10\x04")) +  // sample, label
      message('\x1a', "\x08\x01\x28\x04") +                                                // mapping
      message('\x22', "\x08\x01\x10\x01" + message('\x22', "\x08\x01\x10\x09")) +          // location, line
      message('\x2a', "\x08\x01\x10\x03") +                                                // function
      "\x32\x00\x32\x01t\x32\x01u\x32\x01n\x32\x01p"s;
  const Result<Profile> decoded = decode(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->text(decoded->value_types.at(0).unit), "u");
  EXPECT_THAT(decoded->samples.at(0).values, ElementsAre(5));
  EXPECT_EQ(label_text(*decoded, decoded->samples[0], "n"), "p");
  EXPECT_EQ(decoded->text(decoded->mappings.at(0).path), "p");
  EXPECT_EQ(decoded->locations.at(0).lines.at(0).line, 9);
  EXPECT_EQ(decoded->text(decoded->functions.at(0).name), "n");
}

TEST(Pprof, FieldsComeInAnyOrder) {
  const std::string label_bytes = "\x20\x01\x18\x05\x10\x00\x08\x01"s;  // unit, number, text, key
  const std::string line_bytes = "\x18\x03\x10\x07\x08\x01"s;           // column, line, function
  const Result<Profile> decoded = decode("\x32\x00\x32\x01x\x0a\x04\x08\x01\x10\x01"s + "\x12\x10\x1a\x08"s +
                                         label_bytes + "\x0a\x01\x01\x12\x01\x09"s + "\x22\x0a\x22\x06"s +
                                         line_bytes + "\x08\x01"s + "\x2a\x04\x10\x01\x08\x01"s);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  const ProfileLabel& label = decoded->samples.at(0).labels.at(0);
  EXPECT_EQ(decoded->text(label.key), "x");
  EXPECT_EQ(decoded->text(label.unit), "x");
  EXPECT_EQ(label.number, 5);
  const ProfileLine& line = decoded->locations.at(0).lines.at(0);
  EXPECT_EQ(line.line, 7);
  EXPECT_EQ(line.column, 3);
}

TEST(Pprof, ReadsWhatIsSaidOfTheWholeProfile) {
  const Result<Profile> decoded =
      decode("\x32\x00\x32\x01x\x32\x01y"s + "\x48\x05\x50\x06"s + "\x5a\x04\x08\x01\x10\x02"s + "\x60\x07"s +
             "\x6a\x02\x01\x02"s + "\x70\x01\x78\x02"s);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->time_ns, 5);
  EXPECT_EQ(decoded->duration_ns, 6);
  EXPECT_EQ(decoded->text(decoded->period_type.type), "x");
  EXPECT_EQ(decoded->text(decoded->period_type.unit), "y");
  EXPECT_EQ(decoded->period, 7);
  EXPECT_THAT(decoded->comments, ElementsAre(1U, 2U));
  EXPECT_EQ(decoded->text(decoded->default_value_type), "x");
  EXPECT_EQ(decoded->text(decoded->doc_url), "y");
}

TEST(Pprof, IdsOfEachKindAreTheirOwn) {
  // Mappings 1 and 9, functions 9 and 1, locations 2 and 1.
  const Result<Profile> decoded = decode(
      "\x32\x00\x32\x01p\x32\x01q\x32\x01r\x32\x01s"s + "\x1a\x04\x08\x01\x28\x01\x1a\x04\x08\x09\x28\x02"s +
      "\x2a\x04\x08\x09\x10\x03\x2a\x04\x08\x01\x10\x04"s + "\x22\x08\x08\x02\x10\x09\x22\x02\x08\x09"s +
      "\x22\x08\x08\x01\x10\x01\x22\x02\x08\x01"s + "\x12\x04\x0a\x02\x01\x02"s);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  const auto words_of = [&](std::size_t depth) {
    const ProfileLocation& location = decoded->locations[decoded->samples.at(0).locations.at(depth)];
    return std::string(decoded->text(decoded->functions[location.lines.at(0).function].name)) +
           std::string(decoded->text(decoded->mappings[location.mapping].path));
  };
  EXPECT_EQ(words_of(0), "sp");
  EXPECT_EQ(words_of(1), "rq");
  const std::string strings = "\x32\x00"s;
  expect_corrupt(strings + "\x2a\x02\x08\x09\x2a\x02\x08\x09"s, "function id 9 is used twice");
  expect_corrupt(strings + "\x2a\x02\x08\x01\x2a\x02\x08\x01"s, "function id 1 is used twice");
  expect_corrupt(strings + "\x2a\x02\x10\x00"s, "a function has id 0");
}

TEST(Pprof, IsAsLargeAsItMayBe) {
  const std::string bytes = "\x32\x00"s;
  EXPECT_TRUE(decode(bytes, {.inflated_bytes = 2}).ok());
  EXPECT_FALSE(decode(bytes, {.inflated_bytes = 1}).ok());
  EXPECT_TRUE(decode(bytes, {.memory_bytes = sizeof(std::string)}).ok());
  EXPECT_FALSE(decode(bytes, {.memory_bytes = sizeof(std::string) - 1}).ok());
}

}  // namespace
}  // namespace ddprof
