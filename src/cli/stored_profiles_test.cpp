#include "cli/stored_profiles.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/scratch_fixture.hpp"
#include "encode/output_format.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

std::string profile_bytes(std::int64_t cpu, std::string_view service, std::int64_t seconds,
                          std::string_view type = "cpu") {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type(type, "nanoseconds")};
  builder.profile().time_ns = seconds * 1'000'000'000;
  builder.profile().duration_ns = 1'000'000'000;
  if (!service.empty()) builder.profile().comments = {builder.intern("service: " + std::string(service))};
  builder.add_sample({{builder.add_named_location("work")}, {cpu}, {}});
  return encode(std::move(builder).build(), OutputFormat::pprof_gzip).value();
}

TEST(StoredProfiles, IndexAndFolderTogether) {
  ScratchFolder folder;
  for (const char* name : {"old-1-000000.pb.gz", "new.pb.gz"}) folder.write(name, profile_bytes(5, "", 1));
  folder.write("found.pb.gz", profile_bytes(7, "mail", 50));
  folder.write("broken.pb.gz", "no profile");
  folder.write(".hidden.pb.gz", profile_bytes(5, "", 1));
  ASSERT_EQ(::symlink(folder.path("new.pb.gz").c_str(), folder.path("link.pb.gz").c_str()), 0);
  folder.write(
      "index.jsonl",
      // As older versions wrote it; the service is in the name.
      R"({"file":"old-1-000000.pb.gz","bytes":9,"sequence":0,"start":"1970-01-01T00:00:10Z",)"
      R"("end":"1970-01-01T00:00:20Z","sums":{"cpu/nanoseconds":5}})"
      "\n"
      R"({"file":"new.pb.gz","bytes":9,"sequence":1,"service":"shop","pid":7,"start":"1970-01-01T00:01:40Z",)"
      R"("end":"1970-01-01T00:02:00Z","sums":{"page-faults/count":5}})"
      "\n"
      R"({"file":"gone.pb.gz","bytes":9,"sequence":2,"start":"1970-01-01T00:01:40Z","end":"1970-01-01T00:02:00Z"})"
      "\nnonsense\n");
  const auto kept = profiles_in(folder.path());
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 3U);
  EXPECT_EQ((*kept)[0].service, "old");
  EXPECT_EQ((*kept)[0].cpu, 5);
  EXPECT_EQ((*kept)[1].service, "mail");
  EXPECT_EQ((*kept)[1].cpu, 7);
  EXPECT_EQ((*kept)[1].end, std::chrono::seconds(51));
  EXPECT_EQ((*kept)[2].service, "shop");
  EXPECT_EQ((*kept)[2].cpu, std::nullopt);
  EXPECT_FALSE(profiles_in(folder.path("nowhere")).ok());
}

TEST(StoredProfiles, AreChosenByTimeAndService) {
  const StoredProfile profile{
      .service = "shop", .start = std::chrono::seconds(10), .end = std::chrono::seconds(20)};
  EXPECT_TRUE(ProfileChoice{}.has(profile));
  EXPECT_TRUE((ProfileChoice{.since = std::chrono::seconds(15)}.has(profile)));
  EXPECT_FALSE((ProfileChoice{.since = std::chrono::seconds(21)}.has(profile)));
  EXPECT_FALSE((ProfileChoice{.until = std::chrono::seconds(9)}.has(profile)));
  EXPECT_FALSE((ProfileChoice{.service = "sho"}.has(profile)));
}

TEST(StoredProfiles, SeveralFilesAreOneProfile) {
  ScratchFolder folder;
  folder.write("a.pb.gz", profile_bytes(5, "", 1));
  folder.write("b.pb.gz", profile_bytes(7, "", 100));
  folder.write("c.pb.gz", profile_bytes(7, "", 100, "wall"));
  const auto merged = load_merged({folder.path("a.pb.gz"), folder.path("b.pb.gz")});
  ASSERT_TRUE(merged.ok());
  ASSERT_EQ(merged->profile.samples.size(), 1U);
  EXPECT_EQ(merged->profile.samples[0].values[0], 12);
  const auto refused = load_merged({folder.path("a.pb.gz"), folder.path("c.pb.gz")});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("wall/nanoseconds: profiles of different values cannot be merged"),
            std::string::npos);
}

std::string heap_bytes(std::int64_t seconds, std::int64_t leaked, std::int64_t cached) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("alloc_space", "bytes"),
                                   builder.value_type("inuse_space", "bytes")};
  builder.profile().time_ns = seconds * 1'000'000'000;
  builder.profile().duration_ns = 10'000'000'000;
  builder.add_sample({{builder.add_named_location("leak")}, {50, leaked}, {}});
  builder.add_sample({{builder.add_named_location("cache")}, {50, cached}, {}});
  return encode(std::move(builder).build(), OutputFormat::pprof_gzip).value();
}

class LiveProfiles : public testing::Test {
 protected:
  LiveProfiles() {
    folder_.write("shop-1-000000.pb.gz", heap_bytes(0, 100, 900));
    folder_.write("shop-1-000001.pb.gz", heap_bytes(10, 150, 900));
    folder_.write("shop-1-000002.pb.gz", heap_bytes(20, 200, 800));
    folder_.write("mail-2-000000.pb.gz", heap_bytes(5, 7, 0));
  }
  std::vector<std::string> paths(std::initializer_list<const char*> names) {
    std::vector<std::string> found;
    for (const char* name : names) found.push_back(folder_.path(std::string(name) + ".pb.gz"));
    return found;
  }
  static std::int64_t sum(const Profile& profile, std::size_t column) {
    std::int64_t total = 0;
    for (const ProfileSample& sample : profile.samples) total += sample.values[column];
    return total;
  }

  ScratchFolder folder_;
};

TEST_F(LiveProfiles, OfEachProgramTheLastOneTellsWhatIsAlive) {
  const auto merged =
      load_merged(paths({"shop-1-000002", "shop-1-000000", "mail-2-000000", "shop-1-000001"}));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(sum(merged->profile, 0), 400) << "what is allocated adds up";
  EXPECT_EQ(sum(merged->profile, 1), 200 + 800 + 7);
  ASSERT_TRUE(merged->growth);
  EXPECT_EQ(merged->growth->before, 1007);
  EXPECT_EQ(merged->growth->after, 1007);
  EXPECT_EQ(merged->growth->over, std::chrono::seconds(20));
}

TEST_F(LiveProfiles, GrowthIsWhatWasNotThereBefore) {
  const auto grown =
      load_merged(paths({"shop-1-000000", "shop-1-000001", "shop-1-000002"}), MergeView::growth);
  ASSERT_TRUE(grown.ok());
  ASSERT_EQ(grown->profile.samples.size(), 1U);
  EXPECT_EQ(grown->profile.samples[0].values, (std::vector<std::int64_t>{0, 100}));
  ASSERT_TRUE(grown->growth);
  EXPECT_TRUE(grown->growth->is_view);
  EXPECT_EQ(grown->growth->freed, 100);
}

TEST_F(LiveProfiles, GrowthNeedsTwoMomentsAndLiveBytes) {
  const auto one = load_merged(paths({"shop-1-000000"}), MergeView::growth);
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().message, "--growth: all profiles are of the same moment");
  folder_.write("cpu.pb.gz", profile_bytes(5, "", 1));
  EXPECT_FALSE(load_merged(paths({"cpu"}), MergeView::growth).ok());
}

}  // namespace
}  // namespace ddprof
