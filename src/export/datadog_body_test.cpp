#include "export/datadog_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

const DatadogIdentity kShop{.service = "shop",
                            .environment = "prod",
                            .version = "1.2",
                            .runtime_id = "7c0f7b7e-3f2c-4a4b-9b8f-1f6f7a0f5d11",
                            .process_id = 4242,
                            .host = "box",
                            .architecture = "amd64",
                            .platform = "x86_64-unknown-linux-gnu",
                            .cores = 16,
                            .online_cores = 8,
                            .includes_kernel = false,
                            .kernel_release = "6.1.0",
                            .kernel_version = "#1 SMP",
                            .tags = "team:a,service:other"};

TEST(DatadogBody, WritesTimesWithNineDigits) {
  EXPECT_EQ(rfc3339(Nanoseconds(1'714'564'800'000'000'000)), "2024-05-01T12:00:00.000000000Z");
  EXPECT_EQ(rfc3339(Nanoseconds(1'714'564'859'000'000'042)), "2024-05-01T12:00:59.000000042Z");
  EXPECT_EQ(rfc3339(Nanoseconds(-1)), "1969-12-31T23:59:59.999999999Z");
}

TEST(DatadogBody, TagsWhoseProfileItIs) {
  const DatadogEvent event{.sequence = 7, .dimensions = {"container_id", "shard"}};
  EXPECT_EQ(tags_of(kShop, event).joined(),
            "service:shop,env:prod,version:1.2,host:box,language:native,runtime:native,runtime_os:linux,"
            "runtime_arch:amd64,runtime-id:7c0f7b7e-3f2c-4a4b-9b8f-1f6f7a0f5d11,process_id:4242,"
            "profiler_version:" DDPROF_VERSION
            ",profile_seq:7,number_of_cpu_cores:16,number_hw_concurent_threads:8,"
            "include_kernel:false,ddprof.custom_ctx:container_id,ddprof.custom_ctx:shard,team:a,"
            "runtime_platform:x86_64-unknown-linux-gnu");
}

TEST(DatadogBody, SaysThatTheBackendNamesTheFunctions) {
  EXPECT_THAT(tags_of({.has_remote_symbols = true}, {}).list(), testing::Contains("remote_symbols:yes"));
}

TEST(DatadogBody, LeavesOutWhatNobodySaid) {
  EXPECT_EQ(tags_of({}, {}).joined(),
            "language:native,runtime:native,runtime_os:linux,profiler_version:" DDPROF_VERSION
            ",profile_seq:0");
}

TEST(DatadogBody, DescribesTheProfileInJson) {
  const DatadogEvent event{
      Nanoseconds(1'714'564'800'000'000'000), Nanoseconds(1'714'564'859'000'000'000), 3, {}};
  DatadogIdentity quoted = kShop;
  quoted.version = "1\"2";
  const std::string json = event_json(quoted, event, std::vector{Attachment{"profile.pprof", ""}});
  EXPECT_THAT(json, HasSubstr(R"("attachments":["profile.pprof"])"));
  EXPECT_THAT(
      json, HasSubstr(R"("start":"2024-05-01T12:00:00.000000000Z","end":"2024-05-01T12:00:59.000000000Z")"));
  EXPECT_THAT(json, HasSubstr(R"("family":"native","version":"4")"));
  EXPECT_THAT(json, HasSubstr(R"(,version:1\"2,)"));
  EXPECT_THAT(json, HasSubstr(R"("application":{"env":"prod","service":"shop","version":"1\"2"})"));
}

TEST(DatadogBody, HoldsTheEventAndTheProfile) {
  std::uint64_t number = 0;
  const MultipartForm form = datadog_body(kShop, {}, {{"profile.pprof", "PPROF"}}, [&] { return ++number; });
  EXPECT_THAT(form.bytes,
              HasSubstr("name=\"event\"; filename=\"event.json\"\r\nContent-Type: application/json"));
  EXPECT_THAT(form.bytes, HasSubstr("name=\"profile.pprof\"; filename=\"profile.pprof\""));
  EXPECT_THAT(form.bytes, HasSubstr("\r\n\r\nPPROF\r\n--"));
}

}  // namespace
}  // namespace ddprof
