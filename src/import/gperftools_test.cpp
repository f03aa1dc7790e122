#include "import/foreign_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/profile_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_data::column_names;

// Words as gperftools writes them, in any of the four shapes.
std::string words(const std::vector<std::uint64_t>& numbers, std::size_t bytes = 8, bool is_big = false) {
  std::string text;
  for (const std::uint64_t number : numbers) {
    for (std::size_t at = 0; at < bytes; ++at)
      text += static_cast<char>(number >> 8 * (is_big ? bytes - 1 - at : at));
  }
  return text;
}

constexpr std::string_view kMaps =
    "00400000-00402000 r-xp 00001000 08:02 173521      /usr/bin/app with spaces\n"
    "00600000-00601000 rw-p 00002000 08:02 173521      /usr/bin/app with spaces\n"
    "7f0000-7f8000 r-xp 00000000 08:02 5 /lib/libc.so.6\n";

// One handler frame (0x999) in second place, two stacks.
std::vector<std::uint64_t> cpu_words() {
  return {0, 3, 0, 10000, 0, 5, 3, 0x400123, 0x999, 0x400457, 2, 3, 0x7f0100, 0x999, 0x400557, 0, 1, 0};
}

TEST(Gperftools, ReadsCpuProfilesOfEveryWordShape) {
  for (const std::size_t bytes : {4U, 8U}) {
    for (const bool is_big : {false, true}) {
      const std::string file = words(cpu_words(), bytes, is_big) + std::string(kMaps);
      ASSERT_TRUE(is_gperftools_cpu(file));
      const Result<Profile> profile = decode_gperftools_cpu(file);
      ASSERT_TRUE(profile.ok()) << profile.error().message;
      EXPECT_THAT(column_names(*profile), ElementsAre("samples/count", "cpu/nanoseconds"));
      EXPECT_EQ(profile->period, 10'000'000);
      ASSERT_EQ(profile->samples.size(), 2U);
      const ProfileSample& first = profile->samples[0];
      EXPECT_THAT(first.values, ElementsAre(5, 50'000'000));
      ASSERT_EQ(first.locations.size(), 2U) << "the frame of the signal handler is gone";
      const ProfileLocation& leaf = profile->locations[first.locations[0]];
      const ProfileLocation& root = profile->locations[first.locations[1]];
      EXPECT_EQ(leaf.address.value, 0x400123U);
      EXPECT_EQ(root.address.value, 0x400456U) << "callers point into their call";
      EXPECT_EQ(profile->text(profile->mappings.at(leaf.mapping).path), "/usr/bin/app with spaces");
      EXPECT_EQ(profile->mappings[leaf.mapping].file_offset, 0x1000U);
    }
  }
}

TEST(Gperftools, KeepsCallersThatDiffer) {
  const std::string file = words({0, 3, 0, 1, 0, 1, 2, 10, 20, 1, 2, 10, 30, 0, 1, 0});
  const Result<Profile> profile = decode_gperftools_cpu(file);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->samples.at(0).locations.size(), 2U);
  EXPECT_EQ(profile->locations.at(0).mapping, kNoMapping);
}

TEST(Gperftools, GivesAnErrorForEveryCutBeforeTheEndMark) {
  const std::string file = words(cpu_words());
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(decode_gperftools_cpu(std::string_view(file).substr(0, length)).ok());
  }
  EXPECT_THAT(decode_gperftools_cpu(words({0, 3, 0, 1, 0, 1, ~0ULL})).error().message, HasSubstr("too soon"));
}

TEST(HeapText, ReadsGperftoolsProfilesAndUndoesTheSampling) {
  const std::string file =
      "heap profile:      3:   3072 [     5:   4096] @ heap_v2/524288\n"
      "     2:     2048 [     4:     3072] @ 0x400101 0x400457\n"
      "     1:     1024 [     1:     1024] @ 0x400201\n"
      "\nMAPPED_LIBRARIES:\n" +
      std::string(kMaps);
  ASSERT_TRUE(is_heap_text(file));
  const Result<Profile> profile = decode_heap_text(file);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_THAT(column_names(*profile), ElementsAre("alloc_objects/count", "alloc_space/bytes",
                                                  "inuse_objects/count", "inuse_space/bytes"));
  EXPECT_EQ(profile->text(profile->default_value_type), "inuse_space");
  EXPECT_EQ(profile->period, 524288);
  ASSERT_EQ(profile->samples.size(), 2U);
  // A sampled block of 1024 bytes stands for 1 / (1 - e^(-1024/524288)) = 512.50016 of them, one of 768 bytes
  // for 683.16679.
  EXPECT_THAT(profile->samples[0].values, ElementsAre(2732, 2098688, 1025, 1049600));
  EXPECT_THAT(profile->samples[1].values, ElementsAre(512, 524800, 512, 524800));
  const ProfileLocation& leaf = profile->locations[profile->samples[0].locations.at(0)];
  EXPECT_EQ(leaf.address.value, 0x400100U);
  EXPECT_EQ(profile->text(profile->mappings.at(leaf.mapping).path), "/usr/bin/app with spaces");
}

TEST(HeapText, TakesUnsampledProfilesAsTheyAre) {
  for (const std::string_view kind : {"heapprofile", "heap_v2/1", "heap/2"}) {
    const Result<Profile> profile =
        decode_heap_text(fmt::format("heap profile: 1: 64 [2: 128] @ {}\n 1: 64 [2: 128] @ 0x10\n", kind));
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_THAT(profile->samples.at(0).values, ElementsAre(2, 128, 1, 64));
  }
}

TEST(HeapText, ReadsJemallocProfilesThreadByThread) {
  const std::string file =
      "heap_v2/1024\n"
      "  t*: 3: 3072 [0: 0]\n"
      "  t0: 1: 1024 [0: 0]\n"
      "  t7: 2: 2048 [0: 0]\n"
      "@ 0x400101 0x400457\n"
      "  t*: 3: 3072 [0: 0]\n"
      "  t0: 1: 1024 [0: 0]\n"
      "  t7: 2: 2048 [0: 0]\n"
      "@ 0x400201\n"
      "  t*: 1: 1024 [0: 0]\n"
      "\nMAPPED_LIBRARIES:\n" +
      std::string(kMaps);
  const Result<Profile> profile = decode_heap_text(file);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->samples.size(), 3U);
  // 1 / (1 - 1/e) = 1.58198
  EXPECT_THAT(profile->samples[0].values, ElementsAre(0, 0, 1, 1619));
  EXPECT_THAT(profile->samples[1].values, ElementsAre(0, 0, 3, 3239));
  EXPECT_EQ(label_text(*profile, profile->samples[1], kThreadIdLabel), "7");
  EXPECT_TRUE(profile->samples[2].labels.empty());
}

TEST(HeapText, RefusesLinesOfAnotherForm) {
  for (const std::string_view text : {"heap profile: 1: 64 [2: 128] @ growthz\n", "heap profile: x\n",
                                      "heap profile: 1: 64 [2: 128] @ heap_v2/1\nnonsense\n",
                                      "heap profile: 1: 64 [2: 128] @ heap_v2/1\n1: 2 [3: 4] @ zz\n",
                                      "heap_v2/1\n@ 0x10\n  t*: 1\n", "heap_v2/1\nnonsense\n"}) {
    EXPECT_FALSE(decode_heap_text(text).ok()) << text;
  }
}

}  // namespace
}  // namespace ddprof
