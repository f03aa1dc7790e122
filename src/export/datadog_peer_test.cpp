#include "export/datadog_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

const std::string kKey = "0123456789abcdef0123456789abcdef";

DatadogOptions at_agent(IntakeFormat format = IntakeFormat::version_4) {
  return {.agent = {.url = "http://agent:8126/dd", .socket = {}},
          .api_key = {},
          .format = format,
          .identity = {},
          .target = {.entity_id = "in-7"}};
}

DatadogOptions at_intake(IntakeFormat format = IntakeFormat::version_4) {
  DatadogOptions options = at_agent(format);
  options.agent.url = "https://intake";
  options.api_key = kKey;
  return options;
}

UploadRequest packed(const DatadogOptions& options, std::vector<std::string> strings = {""}) {
  Profile profile;
  profile.strings = std::move(strings);
  auto request = datadog_peer(options).pack(Batch::of(std::move(profile), 3)).at(0);
  EXPECT_TRUE(request);
  return request ? std::move(request).value() : UploadRequest{};
}

TEST(DatadogPeer, HasAPathForEachReceiverAndGeneration) {
  EXPECT_EQ(datadog_peer(at_agent()).url, "http://agent:8126/dd/profiling/v1/input");
  EXPECT_EQ(datadog_peer(at_agent(IntakeFormat::form)).url, "http://agent:8126/dd/profiling/v1/input");
  EXPECT_EQ(datadog_peer(at_intake()).url, "https://intake/api/v2/profile");
  EXPECT_EQ(datadog_peer(at_intake(IntakeFormat::version_3)).url, "https://intake/v1/input");
}

TEST(DatadogPeer, ShowsItsKeyToTheIntakeOnly) {
  const Peer intake = datadog_peer(at_intake());
  EXPECT_THAT(intake.headers, Contains(Pair("DD-API-KEY", kKey)));
  EXPECT_THAT(datadog_peer(at_agent()).headers, Not(Contains(Key("DD-API-KEY"))));
  const UploadRequest request = packed(at_intake());
  EXPECT_THAT(request.body, Not(HasSubstr(kKey)));
  EXPECT_THAT(request.headers, Not(Contains(Key("DD-API-KEY"))));
  EXPECT_THAT(intake.place, Not(HasSubstr(kKey)));
}

TEST(DatadogPeer, SaysWhatTheTargetPublishesOfItself) {
  DatadogOptions options = at_agent();
  options.identity.service = "guess";
  Batch batch = Batch::of({}, 0);
  batch.target.service = "shop";
  batch.target.process_tags = "entrypoint.name:shop";
  const UploadRequest request = datadog_peer(options).pack(batch).at(0).value();
  EXPECT_EQ(request.headers, (HttpHeaders{{"Datadog-Entity-ID", "in-7"}}));
  const std::string& body = request.body;
  EXPECT_THAT(body, HasSubstr("service:shop,"));
  EXPECT_THAT(body, HasSubstr(R"("process_tags":"entrypoint.name:shop")"));
  EXPECT_THAT(body, Not(HasSubstr("guess")));
  options.has_service = true;
  EXPECT_THAT(datadog_peer(options).pack(batch).at(0).value().body, HasSubstr("service:guess,"));
}

TEST(DatadogPeer, GoesThroughAProxyToTheIntakeOnly) {
  EXPECT_TRUE(datadog_peer(at_intake()).uses_proxy);
  EXPECT_FALSE(datadog_peer(at_agent()).uses_proxy);
}

TEST(DatadogPeer, IsAnotherPlaceForBodiesThatGoToAnotherPath) {
  EXPECT_NE(datadog_peer(at_intake()).place, datadog_peer(at_intake(IntakeFormat::form)).place);
  EXPECT_EQ(datadog_peer(at_agent()).place, datadog_peer(at_agent(IntakeFormat::form)).place);
}

TEST(DatadogPeer, NamesTheKeyThatWasRefused) {
  EXPECT_THAT(datadog_peer(at_intake()).hint(401), HasSubstr("DD_API_KEY"));
  EXPECT_THAT(datadog_peer(at_intake()).hint(403), HasSubstr("DD_API_KEY"));
  EXPECT_THAT(datadog_peer(at_agent()).hint(403), HasSubstr("the agent"));
  EXPECT_THAT(datadog_peer(at_intake()).hint(404), HasSubstr("--site"));
}

TEST(DatadogPeer, SaysWhatToDoAboutEachRefusal) {
  const Peer intake = datadog_peer(at_intake()), agent = datadog_peer(at_agent());
  EXPECT_THAT(intake.hint(0), HasSubstr("HTTPS_PROXY"));
  EXPECT_THAT(agent.hint(0), HasSubstr("start the agent"));
  for (const Peer& peer : {intake, agent}) EXPECT_THAT(peer.hint(413), HasSubstr("--upload-period"));
  for (const unsigned passing : {408U, 429U, 500U, 503U})
    EXPECT_THAT(intake.hint(passing), HasSubstr("wait")) << passing;
  for (const unsigned lasting : {400U, 499U})
    EXPECT_THAT(intake.hint(lasting), HasSubstr("--site")) << lasting;
  for (const unsigned elsewhere : {300U, 307U, 399U})
    EXPECT_THAT(agent.hint(elsewhere), HasSubstr("name the right address")) << elsewhere;
  for (const unsigned other : {299U, 400U}) EXPECT_THAT(agent.hint(other), HasSubstr("its log")) << other;
}

TEST(DatadogPeer, CompressesAsTheReceiverKnowsIt) {
  EXPECT_THAT(packed(at_agent()).body, HasSubstr("\r\n\r\n\x28\xb5\x2f\xfd"));
  for (const IntakeFormat old : {IntakeFormat::version_3, IntakeFormat::form})
    EXPECT_THAT(packed(at_agent(old)).body, HasSubstr("\r\n\r\n\x1f\x8b"));
}

TEST(DatadogPeer, DeclaresContainersWhereSamplesHaveThem) {
  const std::string tag = "ddprof.custom_ctx:container_id";
  EXPECT_THAT(packed(at_agent()).body, Not(HasSubstr(tag)));
  EXPECT_THAT(packed(at_agent(), {"", std::string(kContainerIdLabel)}).body, HasSubstr(tag));
}

Batch batch_of_two_services(std::uint64_t sequence) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  for (const std::uint32_t process : {1U, 0U}) {
    ProfileSample sample{{builder.add_named_location("main")}, {1, 10}, {}};
    if (process == 1) sample.labels.push_back(builder.text_label(kContainerIdLabel, "c1"));
    sample.process = process;
    builder.add_sample(std::move(sample));
  }
  Batch batch = Batch::of(std::move(builder).build(), sequence);
  batch.processes = {{},
                     {.pid = 7,
                      .service = "shop",
                      .environment = "test",
                      .version = "2",
                      .container_id = "c1",
                      .entity_id = "ci-c1",
                      .external_environment = "it-false"}};
  return batch;
}

TEST(DatadogPeer, SendsEachShareOfAHostAsItsOwn) {
  DatadogOptions options = at_agent();
  options.identity = {.service = "host", .environment = "prod", .version = "1", .runtime_id = "run"};
  options.target = {};
  options.new_runtime_id = [] { return std::string("another"); };
  options.shares = std::make_shared<HostShares>(HostShares::Detail::process);
  const Peer peer = datadog_peer(options);
  for (std::uint64_t batch = 0; batch < 2; ++batch) {
    const auto requests = peer.pack(batch_of_two_services(batch));
    ASSERT_EQ(requests.size(), 2U);
    const UploadRequest& shop = requests[0].value();
    EXPECT_EQ(shop.headers, (HttpHeaders{{"Datadog-Container-ID", "c1"},
                                         {"Datadog-Entity-ID", "ci-c1"},
                                         {"Datadog-External-Env", "it-false"}}));
    for (const char* tag :
         {"service:shop,", "env:test,", "version:2,", "runtime-id:another,", "process_id:7,"})
      EXPECT_THAT(shop.body, HasSubstr(tag));
    EXPECT_THAT(shop.body, HasSubstr(fmt::format("profile_seq:{}\"", batch)));
    EXPECT_THAT(shop.body, Not(HasSubstr("ddprof.custom_ctx")));
    const UploadRequest& host = requests[1].value();
    EXPECT_EQ(host.headers, HttpHeaders{});
    for (const char* tag : {"service:host,", "env:prod,", "version:1,", "runtime-id:run,"})
      EXPECT_THAT(host.body, HasSubstr(tag));
    EXPECT_THAT(host.body, HasSubstr(fmt::format("profile_seq:{}\"", batch)));
    EXPECT_THAT(host.body, Not(HasSubstr("process_id:")));
  }
}

TEST(DatadogPeer, TriesAgainWhatMayPass) {
  for (const unsigned status : {408U, 429U, 500U, 503U})
    EXPECT_TRUE(datadog_peer(at_agent()).may_pass(status)) << status;
  for (const unsigned status : {400U, 403U, 407U, 413U, 430U, 499U})
    EXPECT_FALSE(datadog_peer(at_intake()).may_pass(status)) << status;
}

TEST(DatadogPeer, NamesFilesByTheirKindsWhereThereAreSeveral) {
  EXPECT_THAT(packed(at_agent()).body, HasSubstr("\"attachments\":[\"profile.pprof\"]"));
  EXPECT_THAT(packed(at_agent(IntakeFormat::version_3)).body, HasSubstr("data[cpu.pprof]"));
  Batch batch = Batch::of({}, 0);
  batch.parts.push_back(batch.parts.front());
  batch.parts.back().kind = "alloc";
  EXPECT_THAT(datadog_peer(at_agent()).pack(batch).at(0).value().body,
              HasSubstr("\"attachments\":[\"cpu.pprof\",\"alloc.pprof\"]"));
}

}  // namespace
}  // namespace ddprof
