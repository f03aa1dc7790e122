#include "export/profile_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Profile second_of_cpu() {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  builder.profile().time_ns = 1'714'564'800'000'000'000;
  builder.profile().duration_ns = 2'000'000'000;
  builder.add_sample({{builder.add_named_location("main")}, {60, 600'000'000}, {}});
  builder.add_sample({{builder.add_named_location("work")}, {40, 400'000'000}, {}});
  return std::move(builder).build();
}

void send(const ScratchFolder& folder, const std::string& name, std::uint64_t sequence,
          FolderLimits limits = {}, std::int64_t later_ns = 0) {
  auto destination =
      ProfileFolder::create({.prefix = folder.path(name), .service = "the \"shop\"", .pid = 42}, limits);
  ASSERT_TRUE(destination.ok());
  Profile profile = second_of_cpu();
  profile.time_ns += later_ns;
  ASSERT_TRUE(destination->send(Batch::of(std::move(profile), sequence)).ok());
}

std::vector<std::string> indexed(const ScratchFolder& folder) {
  std::vector<std::string> names;
  for (const IndexEntry& entry : read_index(folder.read("index.jsonl"))) names.push_back(entry.file);
  return names;
}

TEST(ProfileFolder, SaysWhatEachFileHolds) {
  const ScratchFolder folder;
  send(folder, "app", 7);
  EXPECT_TRUE(folder.has("app-000007.pb.gz"));
  EXPECT_EQ(folder.read("index.jsonl"),
            fmt::format(R"({{"file":"app-000007.pb.gz","bytes":{},"sequence":7,)"
                        R"("service":"the \"shop\"","pid":42,)"
                        R"("start":"2024-05-01T12:00:00.000000000Z","end":"2024-05-01T12:00:02.000000000Z",)"
                        R"("sums":{{"samples/count":100,"cpu/nanoseconds":1000000000}}}})"
                        "\n",
                        folder.read("app-000007.pb.gz").size()));
}

TEST(ProfileFolder, KeepsTheNewestOfAllRuns) {
  const ScratchFolder folder;
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) send(folder, "old", sequence, {.files = 4});
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) send(folder, "new", sequence, {.files = 4});
  EXPECT_THAT(indexed(folder),
              ElementsAre("old-000002.pb.gz", "new-000000.pb.gz", "new-000001.pb.gz", "new-000002.pb.gz"));
  EXPECT_FALSE(folder.has("old-000001.pb.gz"));
  EXPECT_TRUE(folder.has("old-000002.pb.gz"));
}

TEST(ProfileFolder, KeepsNoMoreThanSoManyBytesButTheNewest) {
  const ScratchFolder folder;
  send(folder, "app", 0);
  const std::uint64_t size = folder.read("app-000000.pb.gz").size();
  for (std::uint64_t sequence = 1; sequence < 4; ++sequence)
    send(folder, "app", sequence, {.bytes = 2 * size + 1});
  EXPECT_THAT(indexed(folder), ElementsAre("app-000002.pb.gz", "app-000003.pb.gz"));
  send(folder, "app", 4, {.bytes = 1});
  EXPECT_THAT(indexed(folder), ElementsAre("app-000004.pb.gz"));
}

TEST(ProfileFolder, ReplacesNoFile) {
  const ScratchFolder folder;
  for (std::int64_t run = 0; run < 3; ++run) send(folder, "app", 0, {}, run);
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000.pb.gz", "app-000000-2.pb.gz", "app-000000-3.pb.gz"));
  for (const std::string& name : indexed(folder)) EXPECT_GT(folder.read(name).size(), 0U) << name;
  send(folder, "app", 1, {.files = 1});
  for (const char* old : {"app-000000.pb.gz", "app-000000-2.pb.gz", "app-000000-3.pb.gz"})
    EXPECT_FALSE(folder.has(old)) << old;
  EXPECT_TRUE(folder.has("app-000001.pb.gz"));
}

TEST(ProfileFolder, RemovesOnlyNamesWithASequence) {
  const ScratchFolder folder;
  std::string index;
  const auto list = [&](const std::string& name) {
    folder.write(name, "precious");
    index += fmt::format("{{\"file\":\"{}\",\"bytes\":1}}\n", name);
  };
  const std::vector<std::string> foreign = {"000001.pb.gz",    "-000001.pb.gz",  "a-00001.pb.gz",
                                            "a-00001-2.pb.gz", "a-00000x.pb.gz", "a-000001-x.pb.gz",
                                            "plain.pb.gz"};
  for (const std::string& name : foreign) list(name);
  list("a-000001.pb.gz");
  list("a-000001-12.pb.gz");
  folder.write("index.jsonl", index);
  send(folder, "app", 0, {.files = 1});
  for (const std::string& name : foreign) EXPECT_TRUE(folder.has(name)) << name;
  EXPECT_FALSE(folder.has("a-000001.pb.gz"));
  EXPECT_FALSE(folder.has("a-000001-12.pb.gz"));
}

TEST(ProfileFolder, ABatchThatIsSentAgainIsNotThereTwice) {
  const ScratchFolder folder;
  for (int worker = 0; worker < 2; ++worker) send(folder, "app", 0);
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000.pb.gz"));
  EXPECT_FALSE(folder.has("app-000000-2.pb.gz"));
}

TEST(ProfileFolder, FollowsNoLink) {
  const ScratchFolder folder, elsewhere;
  elsewhere.write("precious", "precious");
  for (const char* name : {"app-000000.pb.gz", "index.jsonl"})
    std::filesystem::create_symlink(elsewhere.path("precious"), folder.path(name));
  send(folder, "app", 0);
  EXPECT_EQ(elsewhere.read("precious"), "precious");
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000-2.pb.gz"));
}

TEST(ProfileFolder, WaitsNotForeverForALock) {
  const ScratchFolder folder;
  folder.write("index.jsonl", "");
  const UniqueFd held(::open(folder.path("index.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  send(folder, "app", 0);
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000.pb.gz"));
}

TEST(ProfileFolder, ReadsLinesOfEarlierVersions) {
  const auto entries = read_index(
      R"({"file":"server-4711-000003.pb.gz","bytes":812,"sequence":3,"start":"2024-05-01T12:00:00.000000000Z",)"
      R"("end":"2024-05-01T12:00:59.000000000Z","sums":{"cpu/nanoseconds":1}})");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].file, "server-4711-000003.pb.gz");
  EXPECT_EQ(entries[0].bytes, 812U);
}

TEST(RunStamp, SortsByTimeAndIsNeverTheSame) {
  const auto noon = Nanoseconds(1'714'564'800'999'999'999);
  EXPECT_EQ(RunStamp::at(noon).time, "20240501T120000Z");
  EXPECT_THAT(RunStamp::at(noon).random, testing::MatchesRegex("[0-9a-f]{6}"));
  EXPECT_NE(RunStamp::at(noon).random, RunStamp::at(noon).random);
}

TEST(ProfileFolder, TouchesNothingThatItHasNotWritten) {
  const ScratchFolder folder;
  folder.write("mine.pb.gz", "precious");
  folder.write("index.jsonl",
               "{\"file\":\"../mine.pb.gz\",\"bytes\":1}\nnot a line of ours\n{\"file\":\"\",\"bytes\":1}\n"
               "{\"file\":\"gone.pb.gz\",\"bytes\":1}\n{\"file\":\"x\",\"bytes\":y}\n");
  send(folder, "app", 0, {.files = 1});
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000.pb.gz"));
  EXPECT_EQ(folder.read("mine.pb.gz"), "precious");
}

TEST(ProfileFolder, BelievesNoIndexOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  constexpr uid_t kStranger = 61001;
  const ScratchFolder folder;
  const auto give_away = [&](const char* name) {
    ASSERT_EQ(::chown(folder.path(name).c_str(), kStranger, kStranger), 0);
  };
  // Of ours, and of theirs in an index of ours.
  for (const char* name : {"ours-1-000000.pb.gz", "theirs-1-000000.pb.gz", "plain.pb.gz"})
    folder.write(name, "precious");
  folder.write("index.jsonl", "{\"file\":\"ours-1-000000.pb.gz\",\"bytes\":1}\n");
  give_away("index.jsonl");
  give_away("theirs-1-000000.pb.gz");
  send(folder, "app", 0, {.files = 1});
  EXPECT_TRUE(folder.has("ours-1-000000.pb.gz"));
  EXPECT_THAT(indexed(folder), ElementsAre("app-000000.pb.gz"));
  folder.write("index.jsonl",
               "{\"file\":\"theirs-1-000000.pb.gz\",\"bytes\":1}\n{\"file\":\"plain.pb.gz\",\"bytes\":1}\n"
               "{\"file\":\"ours-1-000000.pb.gz\",\"bytes\":1}\n");
  send(folder, "app", 1, {.files = 1});
  EXPECT_TRUE(folder.has("theirs-1-000000.pb.gz"));
  EXPECT_TRUE(folder.has("plain.pb.gz"));
  EXPECT_FALSE(folder.has("ours-1-000000.pb.gz"));
}

TEST(ProfileFolder, AnIndexIsReadFromItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  const ScratchFolder folder;
  folder.write("index.jsonl", "text");
  EXPECT_EQ(read_index_file(folder.path()), "text");
  ASSERT_EQ(::chown(folder.path("index.jsonl").c_str(), 61001, 61001), 0);
  EXPECT_EQ(read_index_file(folder.path()), "");
  ASSERT_EQ(::chown(folder.path().c_str(), 61001, 61001), 0);
  EXPECT_EQ(read_index_file(folder.path()), "text");
}

}  // namespace
}  // namespace ddprof
