#include "encode/otlp_dictionary.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(OtlpDictionary, NumbersEqualThingsOnceBehindTheEmptyOne) {
  const Profile profile;
  OtlpDictionary dictionary(profile);
  const OtlpDictionary::Link first{.trace_id = {1}, .span_id = {2}};
  const OtlpDictionary::Link second{.trace_id = {1}, .span_id = {3}};
  EXPECT_EQ(dictionary.link(first), 1U);
  EXPECT_EQ(dictionary.link(second), 2U);
  EXPECT_EQ(dictionary.link(first), 1U);
  EXPECT_EQ(dictionary.text(""), 0U);
  const auto text = dictionary.text("worker");
  EXPECT_EQ(dictionary.texts()[text], "worker");
  EXPECT_EQ(dictionary.text("worker"), text);
  EXPECT_EQ(dictionary.known_text("worker"), text);
  const auto attribute = dictionary.attribute({"key", "value", {}});
  EXPECT_EQ(dictionary.attribute({"key", "value", {}}), attribute);
  EXPECT_NE(dictionary.attribute({"key", "other", {}}), attribute);
  EXPECT_NE(dictionary.attribute({"kez", "value", {}}), attribute);
}

TEST(OtlpDictionary, EqualStacksAreOne) {
  Profile profile;
  profile.locations.resize(2);
  profile.locations[1].address = Address{16};
  for (const auto& stack : {std::vector<std::uint32_t>{0, 1}, {0, 1}, {1, 0}, {0}, {}})
    profile.samples.push_back({.locations = stack});
  OtlpDictionary dictionary(profile);
  EXPECT_EQ(dictionary.stack(0), 1U);
  EXPECT_EQ(dictionary.stack(1), 1U);
  EXPECT_EQ(dictionary.stack(2), 2U);
  EXPECT_EQ(dictionary.stack(3), 3U);
  EXPECT_EQ(dictionary.stack(4), 0U);
  EXPECT_EQ(dictionary.locations().entries().size(), 2U);
}

TEST(OtlpDictionary, EqualLocationsAreOneWithOrWithoutAMapping) {
  Profile profile;
  profile.mappings.resize(1);
  profile.mappings[0].start = Address{16};
  profile.locations.resize(4);
  profile.locations[2].mapping = profile.locations[3].mapping = 0;
  for (const std::uint32_t location : {0U, 1U, 2U, 3U}) profile.samples.push_back({.locations = {location}});
  OtlpDictionary dictionary(profile);
  EXPECT_EQ(dictionary.stack(0), dictionary.stack(1));
  EXPECT_EQ(dictionary.stack(2), dictionary.stack(3));
  EXPECT_NE(dictionary.stack(0), dictionary.stack(2));
  EXPECT_EQ(dictionary.locations().entries().size(), 2U);
}

}  // namespace
}  // namespace ddprof
