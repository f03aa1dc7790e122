#include "export/destinations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

// What a user may name, in a folder of the test's own; nothing is uploaded unless a test says so.
class DestinationsTest : public testing::Test {
 protected:
  DestinationsTest() {
    options_.target_name = "shop";
    options_.working_directory = folder_.path("here");
    options_.state_folder = folder_.path("state");
    options_.do_export = false;
    folder_.run("mkdir here");
  }

  std::string description() {
    auto made = make_destination(options_, Pid{42}, stamp_, {});
    return made ? (*made)->describe() : made.error().message;
  }
  void name_a_peer() {
    options_.do_export = true;
    options_.pyroscope_url = "http://localhost:4040";
    options_.given = {"pyroscope-url"};
    options_.spool_dir = "none";
  }

  ScratchFolder folder_;
  DestinationOptions options_{};
  RunStamp stamp_{"20261116T065102Z", "9f3c21"};
};

TEST_F(DestinationsTest, WithoutAPlaceProfilesStayInTheStateFolder) {
  EXPECT_TRUE(is_stored_here(options_));
  EXPECT_TRUE(is_periodic(options_));
  EXPECT_THAT(description(), HasSubstr(folder_.path("state/shop-20261116T065102Z-42-9f3c21")));
  EXPECT_THAT(stored_notice(options_, Pid{42}, stamp_),
              HasSubstr("/state/shop-20261116T065102Z-42-9f3c21-000000.pb.gz"));
  EXPECT_TRUE(check_output(options_).ok());
  options_.state_folder = "";
  EXPECT_THAT(description(), HasSubstr("no place for profiles"));
  EXPECT_EQ(stored_notice(options_, Pid{42}, stamp_), "");
  EXPECT_FALSE(check_output(options_).ok());
}

TEST_F(DestinationsTest, ARecordingIsOneFileInTheWorkingDirectory) {
  options_.is_recording = true;
  EXPECT_FALSE(is_stored_here(options_));
  EXPECT_FALSE(is_periodic(options_));
  EXPECT_THAT(description(), HasSubstr(folder_.path("here/ddprof-shop-42")));
  EXPECT_TRUE(check_output(options_).ok());
  options_.working_directory = folder_.path("nowhere");
  EXPECT_FALSE(check_output(options_).ok());
  options_.debug_pprof_prefix = folder_.path("here/debug");
  EXPECT_TRUE(check_output(options_).ok()) << "nothing is written there then";
}

TEST_F(DestinationsTest, AFileIsWhatWasNamed) {
  options_.output = "cpu.pb.gz";
  EXPECT_FALSE(is_stored_here(options_));
  EXPECT_FALSE(is_periodic(options_));
  EXPECT_THAT(description(), HasSubstr(folder_.path("here/cpu.pb.gz")));
  EXPECT_TRUE(check_output(options_).ok());
  options_.output = "cpu.unknown";
  EXPECT_FALSE(check_output(options_).ok());
}

TEST_F(DestinationsTest, AFolderIsMade) {
  options_.output = "new/place//";
  EXPECT_TRUE(is_periodic(options_));
  EXPECT_TRUE(check_output(options_).ok());
  EXPECT_TRUE(folder_.has("here/new/place"));
  EXPECT_THAT(description(), HasSubstr(folder_.path("here/new/place/shop-20261116T065102Z-42-9f3c21")));
}

TEST_F(DestinationsTest, APrefixIsAPlaceAndAnOutputAnother) {
  options_.debug_pprof_prefix = "debug";
  EXPECT_FALSE(is_stored_here(options_));
  EXPECT_TRUE(is_periodic(options_));
  EXPECT_THAT(description(), HasSubstr(folder_.path("here/debug-20261116T065102Z-42-9f3c21")));
  EXPECT_THAT(description(), testing::Not(HasSubstr(", ")));
  options_.is_recording = true;
  EXPECT_THAT(description(), testing::Not(HasSubstr(", "))) << "it has a place";
  options_.output = "cpu.pb.gz";
  EXPECT_THAT(description(), HasSubstr("here/debug-"));
  EXPECT_THAT(description(), HasSubstr(", " + folder_.path("here/cpu.pb.gz")));
}

TEST_F(DestinationsTest, WhatIsSentIsWrittenOnlyIfThatWasAskedFor) {
  name_a_peer();
  EXPECT_FALSE(is_stored_here(options_));
  EXPECT_TRUE(is_periodic(options_));
  EXPECT_THAT(description(), HasSubstr("localhost:4040"));
  EXPECT_THAT(description(), testing::Not(HasSubstr(folder_.path())));
  options_.output = "cpu.pb.gz";
  EXPECT_THAT(description(), HasSubstr(folder_.path("here/cpu.pb.gz") + ", "));
}

TEST_F(DestinationsTest, TheSpoolIsMadeOnlyWhereSomethingIsSent) {
  options_.spool_dir = folder_.path("spool");
  EXPECT_TRUE(check_spool(options_).ok());
  EXPECT_FALSE(folder_.has("spool"));
  name_a_peer();
  EXPECT_TRUE(check_spool(options_).ok());
  EXPECT_FALSE(folder_.has("spool"));
  options_.spool_dir = folder_.path("spool");
  EXPECT_TRUE(check_spool(options_).ok());
  EXPECT_TRUE(folder_.has("spool"));
}

}  // namespace
}  // namespace ddprof
