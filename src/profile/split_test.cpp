#include "profile/split.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;

// Two services, each with a function of its own above one that both call.
class TwoServices {
 public:
  TwoServices() {
    Profile& profile = builder_.profile();
    profile.value_types = {builder_.value_type("samples", "count"),
                           builder_.value_type("cpu", "nanoseconds")};
    profile.period_type = builder_.value_type("cpu", "nanoseconds");
    profile.period = 10'101'010;
    profile.time_ns = 1000;
    profile.duration_ns = 2000;
    profile.default_value_type = builder_.intern("cpu");
    profile.time_label = builder_.number_label(kEndTimestampLabel, 0, "nanoseconds");
    profile.comments.push_back(builder_.intern("of all"));
    const std::uint32_t shared = location("memcpy", "/lib/libc.so");
    add({shared, location("sell", "/bin/shop")}, 3, 101, "shop", "c1");
    add({shared, location("pay", "/bin/bank")}, 5, 102, "bank", "");
    add({location("sell", "/bin/shop")}, 7, 103, "shop", "c1");
    add({builder_.add_named_location("[lost: ring buffer full]")}, 11, 0, "", "");
  }

  Profile build() && { return std::move(builder_).build(); }

 private:
  std::uint32_t location(const std::string& name, const std::string& path) {
    const std::uint32_t mapping = builder_.add_mapping(
        {.start = Address{0x1000}, .limit = Address{0x2000}, .path = builder_.intern(path)});
    const ProfileLine line{builder_.add_function(name, name, name + ".cpp", 1), 2, 0};
    return builder_.add_location(mapping, Address{0x1100}, std::span(&line, 1));
  }

  void add(std::vector<std::uint32_t> stack, std::int64_t value, std::int64_t pid, std::string_view service,
           std::string_view container) {
    std::vector<ProfileLabel> labels = {builder_.number_label(kProcessIdLabel, pid)};
    if (!service.empty()) labels.push_back(builder_.text_label(kServiceLabel, service));
    if (!container.empty()) labels.push_back(builder_.text_label(kContainerIdLabel, container));
    builder_.add_sample({std::move(stack), {1, value}, std::move(labels), {1000 + value, 2000}, 3});
  }

  ProfileBuilder builder_;
};

std::vector<std::string> functions_of(const Profile& profile) {
  std::vector<std::string> names;
  for (const ProfileFunction& function : profile.functions) names.emplace_back(profile.text(function.name));
  return names;
}

// A sample as text, whatever the tables are.
std::string described(const Profile& profile, const ProfileSample& sample) {
  std::string text;
  for (std::uint32_t at : sample.locations) {
    const ProfileLocation& location = profile.locations[at];
    for (const ProfileLine& line : location.lines) {
      const ProfileFunction& function = profile.functions[line.function];
      text += fmt::format("{} {} {}:{} ", profile.text(function.name), profile.text(function.system_name),
                          profile.text(function.file), line.line);
    }
    if (location.mapping != kNoMapping)
      text += fmt::format("in {} at {} ", profile.text(profile.mappings[location.mapping].path),
                          location.address.value);
  }
  for (const ProfileLabel& label : sample.labels)
    text += fmt::format("{}={}{}{} ", profile.text(label.key), profile.text(label.text), label.number,
                        profile.text(label.unit));
  for (std::int64_t time : sample.times) text += fmt::format("at {} ", time);
  return text + fmt::format("{} {} of {}", sample.values[0], sample.values[1], sample.events);
}

std::multiset<std::string> described(const Profile& profile) {
  std::multiset<std::string> samples;
  for (const ProfileSample& sample : profile.samples) samples.insert(described(profile, sample));
  return samples;
}

TEST(ProfileCutter, KeepsEachSampleOnceAndWhole) {
  const Profile profile = TwoServices().build();
  const std::vector<std::uint32_t> shares = {0, 1, 0, 2};
  ProfileCutter cutter(profile, shares, 3);
  std::multiset<std::string> cut;
  for (std::size_t share = 0; share < 3; ++share) cut.merge(described(cutter.cut(share, false)));
  EXPECT_EQ(cut, described(profile));
}

TEST(ProfileCutter, KeepsTheOrderOfSamples) {
  const Profile profile = TwoServices().build();
  const std::vector<std::uint32_t> shares = {0, 1, 0, 1};
  const Profile shop = ProfileCutter(profile, shares, 2).cut(0, false);
  ASSERT_EQ(shop.samples.size(), 2U);
  EXPECT_THAT(shop.samples[0].values, ElementsAre(1, 3));
  EXPECT_THAT(shop.samples[1].values, ElementsAre(1, 7));
}

TEST(ProfileCutter, KeepsTheOrderOfMappings) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  std::vector<std::uint32_t> locations;
  for (const char* path : {"/bin/shop", "/bin/bank", "/lib/libc.so"}) {
    const std::uint32_t mapping = builder.add_mapping({.path = builder.intern(path)});
    locations.push_back(builder.add_location(mapping, Address{0x10}, {}));
  }
  builder.add_sample({{locations[2], locations[1]}, {1}, {}});  // the library is used first
  const Profile profile = std::move(builder).build();
  const std::vector<std::uint32_t> shares = {0};
  const Profile bank = ProfileCutter(profile, shares, 1).cut(0, false);
  ASSERT_EQ(bank.mappings.size(), 2U);
  EXPECT_EQ(bank.text(bank.mappings[0].path), "/bin/bank");
  const ProfileLocation& leaf = bank.locations[bank.samples[0].locations[0]];
  EXPECT_EQ(bank.text(bank.mappings[leaf.mapping].path), "/lib/libc.so");
}

TEST(ProfileCutter, LeavesOutWhatAShareDoesNotUse) {
  const Profile profile = TwoServices().build();
  const std::vector<std::uint32_t> shares = {0, 1, 0, 2};
  ProfileCutter cutter(profile, shares, 3);
  const Profile shop = cutter.cut(0, false), bank = cutter.cut(1, false), lost = cutter.cut(2, false);
  EXPECT_THAT(functions_of(shop), ElementsAre("memcpy", "sell"));
  EXPECT_THAT(functions_of(bank), ElementsAre("memcpy", "pay"));
  EXPECT_EQ(shop.locations.size(), 2U);
  EXPECT_EQ(bank.mappings.size(), 2U);
  EXPECT_EQ(lost.mappings.size(), 0U);
  EXPECT_EQ(bank.strings.front(), "");
  EXPECT_THAT(bank.strings, testing::Not(testing::Contains("shop")));
  EXPECT_EQ(std::set<std::string>(bank.strings.begin(), bank.strings.end()).size(), bank.strings.size());
}

TEST(ProfileCutter, GivesEveryShareTheTimesAndColumns) {
  const Profile profile = TwoServices().build();
  const std::vector<std::uint32_t> shares = {1, 1, 1, 1};
  ProfileCutter cutter(profile, shares, 2);
  for (std::size_t share = 0; share < 2; ++share) {
    const Profile cut = cutter.cut(share, share == 1);
    EXPECT_EQ(cut.samples.size(), share == 1 ? 4U : 0U);
    EXPECT_EQ(cut.text(cut.value_types.at(1).unit), "nanoseconds");
    EXPECT_EQ(cut.text(cut.default_value_type), "cpu");
    EXPECT_EQ(cut.text(cut.time_label.key), kEndTimestampLabel);
    EXPECT_EQ(cut.text(cut.time_label.unit), "nanoseconds");
    EXPECT_EQ(cut.text(cut.period_type.type), "cpu");
    EXPECT_EQ(std::tuple(cut.period, cut.time_ns, cut.duration_ns), std::tuple(10'101'010, 1000, 2000));
    EXPECT_EQ(cut.comments.size(), share == 1 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace ddprof
