#include "profile/profile_builder.hpp"

#include <gtest/gtest.h>

#include <array>

namespace ddprof {
namespace {

TEST(ProfileBuilder, StoresEqualStringsOnceAndTheEmptyOneFirst) {
  ProfileBuilder builder;
  EXPECT_EQ(builder.intern(""), 0U);
  const StringIndex first = builder.intern("main");
  EXPECT_NE(first, 0U);
  EXPECT_EQ(builder.intern("main"), first);
  EXPECT_NE(builder.intern("work"), first);
  for (int number = 0; number < 1000; ++number) builder.intern(std::to_string(number));
  EXPECT_EQ(builder.intern("main"), first);
  const Profile profile = std::move(builder).build();
  EXPECT_EQ(profile.text(0), "");
  EXPECT_EQ(profile.text(first), "main");
  EXPECT_EQ(profile.strings.size(), 1003U);
}

TEST(ProfileBuilder, StoresAnEmptyFirstStringEvenWhenAskedForAnotherFirst) {
  ProfileBuilder builder;
  EXPECT_EQ(builder.intern("main"), 1U);
  EXPECT_EQ(builder.intern(""), 0U);
}

TEST(ProfileBuilder, MergesTheFlagsOfEqualMappings) {
  ProfileBuilder builder;
  ProfileMapping mapping{.start = {0x1000}, .limit = {0x2000}, .path = builder.intern("/bin/app")};
  EXPECT_EQ(builder.add_mapping(mapping), 0U);
  mapping.has_functions = true;
  EXPECT_EQ(builder.add_mapping(mapping), 0U);
  mapping.start = {0x1800};
  EXPECT_EQ(builder.add_mapping(mapping), 1U);
  EXPECT_TRUE(builder.profile().mappings[0].has_functions);
}

TEST(ProfileBuilder, GivesAFunctionWithOneNameBoth) {
  ProfileBuilder builder;
  const std::uint32_t mangled_only = builder.add_function("", "_Z4workv");
  const std::uint32_t readable_only = builder.add_function("main");
  const Profile profile = std::move(builder).build();
  EXPECT_EQ(profile.text(profile.functions[mangled_only].name), "_Z4workv");
  EXPECT_EQ(profile.text(profile.functions[readable_only].system_name), "main");
}

TEST(ProfileBuilder, TellsLocationsApartByInlineChain) {
  ProfileBuilder builder;
  const std::array<ProfileLine, 2> lines{
      {{builder.add_function("inlined"), 3}, {builder.add_function("outer"), 9}}};
  const std::uint32_t whole = builder.add_location(kNoMapping, {0x10}, lines);
  EXPECT_EQ(builder.add_location(kNoMapping, {0x10}, lines), whole);
  EXPECT_NE(builder.add_location(kNoMapping, {0x10}, std::span(lines).last(1)), whole);
  EXPECT_NE(builder.add_location(kNoMapping, {0x11}, lines), whole);
  EXPECT_EQ(builder.add_named_location("[lost]"), builder.add_named_location("[lost]"));
}

}  // namespace
}  // namespace ddprof
