#include "export/profile_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_fixture.hpp"
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
          FolderLimits limits = {}) {
  auto destination = ProfileFolder::create(folder.path(name), limits);
  ASSERT_TRUE(destination.ok());
  ASSERT_TRUE(destination->send(Batch::of(second_of_cpu(), sequence)).ok());
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

}  // namespace
}  // namespace ddprof
