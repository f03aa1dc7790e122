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
  ASSERT_EQ(merged->samples.size(), 1U);
  EXPECT_EQ(merged->samples[0].values[0], 12);
  const auto refused = load_merged({folder.path("a.pb.gz"), folder.path("c.pb.gz")});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("wall/nanoseconds: profiles of different values cannot be merged"),
            std::string::npos);
}

}  // namespace
}  // namespace ddprof
