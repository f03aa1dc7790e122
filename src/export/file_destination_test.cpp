#include "export/file_destination.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/output_file.hpp"
#include "base/read_file.hpp"
#include "encode/pprof.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

class FileDestinationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ddprof_export_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
  }

  std::string directory;
  Profile profile;
};

TEST_F(FileDestinationTest, WritesAFileThatReadsBack) {
  auto destination = FileDestination::create(directory + "/out.pb.gz");
  ASSERT_TRUE(destination);
  profile.period = 42;
  ASSERT_TRUE(destination->send(Batch::of(profile, 0)));
  auto bytes = read_file(directory + "/out.pb.gz");
  ASSERT_TRUE(bytes);
  auto back = decode_pprof(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->period, 42);
  EXPECT_EQ(files(), 1U) << "nothing temporary is left";
}

TEST_F(FileDestinationTest, AddsLaterPartsOfARunToItsFile) {
  auto destination = FileDestination::create(directory + "/out.pb.gz");
  ASSERT_TRUE(destination);
  profile.time_ns = 100;
  profile.duration_ns = 10;
  ASSERT_TRUE(destination->send(Batch::of(profile, 0)));
  profile.time_ns = 110;
  ASSERT_TRUE(destination->send(Batch::of(profile, 1)));
  auto bytes = read_file(directory + "/out.pb.gz");
  ASSERT_TRUE(bytes);
  auto back = decode_pprof(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->time_ns, 100);
  EXPECT_EQ(back->duration_ns, 20);
}

TEST_F(FileDestinationTest, APictureIsOfAllPartsOfARun) {
  auto destination = FileDestination::create(directory + "/out.svg");
  ASSERT_TRUE(destination);
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  builder.add_sample({{builder.add_named_location("main")}, {1234}, {}});
  Batch batch = Batch::of(std::move(builder).build(), 0);
  ASSERT_TRUE(destination->send(batch));
  EXPECT_NE(read_file(directory + "/out.svg")->find("\"total\":1234,"), std::string::npos);
  EXPECT_EQ(files(), 2U) << "the profile, for the next part";
  // The next part may be that of another worker.
  batch.sequence = 1;
  batch.is_last = true;
  ASSERT_TRUE(FileDestination::create(directory + "/out.svg")->send(batch));
  EXPECT_NE(read_file(directory + "/out.svg")->find("\"total\":2468,"), std::string::npos);
  EXPECT_EQ(files(), 1U) << "the picture";
}

TEST_F(FileDestinationTest, ATextIsOfAllPartsOfARun) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  builder.add_sample({{builder.add_named_location("main")}, {1234}, {}});
  Batch batch = Batch::of(std::move(builder).build(), 0);
  ASSERT_TRUE(FileDestination::create(directory + "/out.folded")->send(batch));
  EXPECT_EQ(files(), 2U) << "the profile, for the next part";
  batch.sequence = 1;
  batch.is_last = true;
  ASSERT_TRUE(FileDestination::create(directory + "/out.folded")->send(batch));
  EXPECT_EQ(*read_file(directory + "/out.folded"), "# value: samples count 0\nmain 2468\n");
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileDestinationTest, ShowsWhatTheFileHoldsEachTimeItIsWritten) {
  std::vector<std::int64_t> durations;
  auto destination = FileDestination::create(
      directory + "/out.pb.gz", [&](const Profile& whole) { durations.push_back(whole.duration_ns); });
  ASSERT_TRUE(destination);
  profile.time_ns = 100;
  profile.duration_ns = 10;
  ASSERT_TRUE(destination->send(Batch::of(profile, 0)));
  profile.time_ns = 110;
  ASSERT_TRUE(destination->send(Batch::of(profile, 1)));
  EXPECT_EQ(durations, (std::vector<std::int64_t>{10, 20}));
}

TEST_F(FileDestinationTest, TakesTheNextFreeName) {
  ASSERT_TRUE(write_output(directory + "/app.pb.gz", "of yesterday"));
  auto first = FileDestination::create_new(directory + "/app");
  auto second = FileDestination::create_new(directory + "/app");  // at the same time
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(second->send(Batch::of(profile, 0)));
  ASSERT_TRUE(first->send(Batch::of(profile, 0)));
  EXPECT_EQ(first->describe(), directory + "/app-2.pb.gz");
  EXPECT_EQ(second->describe(), directory + "/app-3.pb.gz");
  EXPECT_EQ(*read_file(directory + "/app.pb.gz"), "of yesterday");
  EXPECT_EQ(files(), 3U);
}

TEST_F(FileDestinationTest, GivesANameBackThatItDidNotNeed) {
  { auto unused = FileDestination::create_new(directory + "/app"); }
  EXPECT_EQ(files(), 0U);
  auto refused = FileDestination::create_new(directory + "/no/such/app");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("/no/such/app.pb.gz"), std::string::npos);
}

TEST_F(FileDestinationTest, SaysAtOnceThatItCannotWrite) {
  auto missing = FileDestination::create(directory + "/no/such/out.pb.gz");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().message.find("/no/such/out.pb.gz"), std::string::npos);
  EXPECT_FALSE(missing.error().hint.empty());

  std::filesystem::create_directory(directory + "/taken.pb.gz");
  EXPECT_FALSE(FileDestination::create(directory + "/taken.pb.gz"));
  EXPECT_FALSE(FileDestination::create(directory + "/unknown.extension"));
}

TEST_F(FileDestinationTest, AFailedWriteLeavesNothingBehind) {
  auto destination = FileDestination::create(directory + "/out.pb.gz");
  ASSERT_TRUE(destination);
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(destination->send(Batch::of(profile, 0)));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace ddprof
