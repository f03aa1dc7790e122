#include "profile/profile_view.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

class ProfileViewTest : public testing::Test {
 protected:
  StringIndex text(std::string_view words) {
    profile_.strings.emplace_back(words);
    return static_cast<StringIndex>(profile_.strings.size() - 1);
  }
  void add_column(std::string_view type, std::string_view unit) {
    profile_.value_types.push_back({text(type), text(unit)});
  }
  ProfileLine line_of(std::string_view name, std::string_view system_name = "") {
    profile_.functions.push_back(
        {.name = name.empty() ? 0 : text(name), .system_name = system_name.empty() ? 0 : text(system_name)});
    return {.function = static_cast<std::uint32_t>(profile_.functions.size() - 1)};
  }
  void add_location(std::uint32_t mapping, std::uint64_t address, std::vector<ProfileLine> lines = {}) {
    profile_.locations.push_back({mapping, Address{address}, std::move(lines)});
  }
  // The only frame of a location.
  static const NamedFrame& frame_of(const FrameTable& table, std::uint32_t location) {
    EXPECT_EQ(table.frames(location).size(), 1U);
    return table[table.frames(location)[0]];
  }

  Profile profile_;
};

TEST_F(ProfileViewTest, FindsColumns) {
  EXPECT_FALSE(default_column(profile_));
  EXPECT_FALSE(samples_column(profile_));
  add_column("samples", "count");
  add_column("cpu", "nanoseconds");
  add_column("faults", "count");
  EXPECT_EQ(default_column(profile_), 2U);  // the last one
  profile_.default_value_type = profile_.value_types[1].type;
  EXPECT_EQ(default_column(profile_), 1U);
  profile_.default_value_type = text("gone");
  EXPECT_EQ(default_column(profile_), 2U);
  EXPECT_EQ(find_column(profile_, "cpu"), 1U);
  EXPECT_EQ(find_column(profile_, "faults"), 2U);
  EXPECT_FALSE(find_column(profile_, "wall"));
  EXPECT_EQ(samples_column(profile_), 0U);
}

TEST_F(ProfileViewTest, SamplesAreCounted) {
  add_column("samples", "nanoseconds");
  add_column("faults", "count");
  EXPECT_FALSE(samples_column(profile_));
  add_column("cpu-samples", "count");
  EXPECT_EQ(samples_column(profile_), 2U);
}

TEST_F(ProfileViewTest, LabelsAreTextsOrNumbers) {
  const ProfileSample sample{.labels = {{.key = text("name"), .text = text("worker")},
                                        {.key = text("number"), .number = 7},
                                        {.key = text("nothing")}}};
  EXPECT_EQ(label_text(profile_, sample, "name"), "worker");
  EXPECT_EQ(label_text(profile_, sample, "number"), "7");
  EXPECT_EQ(label_text(profile_, sample, "nothing"), "");
  EXPECT_EQ(label_text(profile_, sample, "other"), "");
}

TEST(BaseName, IsWhatFollowsTheLastSlash) {
  EXPECT_EQ(base_name("/usr/lib/libfoo.so.1"), "libfoo.so.1");
  EXPECT_EQ(base_name("/x"), "x");
  EXPECT_EQ(base_name("libfoo.so.1"), "libfoo.so.1");
  EXPECT_EQ(base_name("/folder/"), "/folder/");
  EXPECT_EQ(base_name(""), "");
}

TEST(SaturatingAdd, StopsAtTheLimits) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(saturating_add(2, 3), 5);
  EXPECT_EQ(saturating_add(kMost, 1), kMost);
  EXPECT_EQ(saturating_add(kLeast, -1), kLeast);
}

TEST_F(ProfileViewTest, FramesHaveNamesOrAddresses) {
  profile_.mappings.push_back({.start = Address{0x10000},
                               .limit = Address{0x20000},
                               .file_offset = 0x500,
                               .path = text("/lib/libfoo.so")});
  add_location(kNoMapping, 0x1234);
  add_location(0, 0x10010);
  add_location(0, 0x10020, {line_of("", "mangled")});
  add_location(0, 0x10030, {line_of("readable", "mangled")});
  add_location(0, 0x10040, {line_of("")});
  const FrameTable table(profile_);
  EXPECT_EQ(frame_of(table, 0).name, "0x1234");
  EXPECT_EQ(frame_of(table, 0).module, "");
  EXPECT_EQ(frame_of(table, 1).name, "libfoo.so+0x510");
  EXPECT_EQ(frame_of(table, 1).module, "libfoo.so");
  EXPECT_TRUE(frame_of(table, 1).is_unnamed);
  EXPECT_EQ(frame_of(table, 2).name, "mangled");
  EXPECT_EQ(frame_of(table, 3).name, "readable");
  EXPECT_FALSE(frame_of(table, 3).is_unnamed);
  EXPECT_EQ(frame_of(table, 4).name, "libfoo.so+0x540");
  EXPECT_TRUE(frame_of(table, 4).is_unnamed);
}

TEST_F(ProfileViewTest, EqualFunctionsOfOneModuleAreOneFrame) {
  profile_.mappings.push_back({.path = text("/lib/one.so")});
  profile_.mappings.push_back({.path = text("/lib/two.so")});
  const ProfileLine inner = line_of("inner");
  const ProfileLine outer = line_of("outer");
  add_location(0, 1, {inner, outer});
  add_location(0, 2, {outer});
  add_location(1, 3, {outer});
  const FrameTable table(profile_);
  EXPECT_EQ(table.size(), 3U);
  ASSERT_EQ(table.frames(0).size(), 2U);
  EXPECT_EQ(table[table.frames(0)[0]].name, "inner");
  EXPECT_EQ(table.frames(0)[1], table.frames(1)[0]);
  EXPECT_NE(table.frames(1)[0], table.frames(2)[0]);
}

TEST_F(ProfileViewTest, NamesThatAreAddressesAreNone) {
  profile_.mappings.push_back({.path = text("/lib/one.so")});
  for (const char* name : {"one.so+0x12", "one.so", "0x12", "one.social", "[lost: ring buffer full]"})
    add_location(0, 1, {line_of(name)});
  add_location(kNoMapping, 1, {line_of("one.so+0x12")});
  const FrameTable table(profile_);
  EXPECT_TRUE(frame_of(table, 0).is_unnamed);
  EXPECT_FALSE(frame_of(table, 1).is_unnamed);
  EXPECT_TRUE(frame_of(table, 2).is_unnamed);
  EXPECT_FALSE(frame_of(table, 3).is_unnamed);
  EXPECT_FALSE(frame_of(table, 4).is_unnamed);
  EXPECT_TRUE(frame_of(table, 4).is_marker);
  EXPECT_FALSE(frame_of(table, 3).is_marker);
  EXPECT_FALSE(frame_of(table, 5).is_unnamed);
}

}  // namespace
}  // namespace ddprof
