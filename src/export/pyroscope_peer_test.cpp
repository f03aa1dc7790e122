#include "export/pyroscope_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/pprof.hpp"
#include "net/http_text.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;

Batch timeline(int samples) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  builder.profile().time_ns = 1'714'564'800'000'000'000;
  builder.profile().duration_ns = 60'000'000'000;
  const std::uint32_t main = builder.add_named_location("main");
  for (int i = 0; i < samples; ++i)
    builder.add_sample(
        {{main}, {1, 10}, {builder.number_label(kEndTimestampLabel, 1'714'564'800'000'000'000 + i)}});
  return Batch::of(std::move(builder).build(), 3);
}

PyroscopeOptions shop() {
  return {
      .url = "https://pyroscope:4040", .application = "shop", .labels = {{"env", "prod"}, {"host", "a b"}}};
}

TEST(PyroscopePeer, SaysWhoseProfileItIsAndOfWhen) {
  const auto request = pyroscope_peer(shop()).pack(timeline(1)).at(0);
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->query,
            "name=shop%7Benv%3Dprod%2Chost%3Da%20b%7D&from=1714564800000000000&until=1714564860000000000&"
            "spyName=ddprof&format=pprof");
  EXPECT_EQ(request->content_type, "application/octet-stream");
  EXPECT_TRUE(request->headers.empty());
}

TEST(PyroscopePeer, SendsOneSampleForManyTimes) {
  const auto request = pyroscope_peer(shop()).pack(timeline(20'000)).at(0);
  ASSERT_TRUE(request.ok()) << request.error().message;
  const auto profile = decode_pprof(std::as_bytes(std::span(request->body)));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->samples.size(), 1U);
  EXPECT_THAT(profile->samples[0].values, ElementsAre(20'000, 200'000));
}

TEST(PyroscopePeer, SendsNothingWithoutSamples) {
  EXPECT_EQ(pyroscope_peer(shop()).pack(timeline(0)).at(0).value().body, "");
}

TEST(PyroscopePeer, NamesUserAndTenantWhereThereAreSome) {
  EXPECT_EQ(pyroscope_peer(shop()).url, "https://pyroscope:4040/ingest");
  EXPECT_TRUE(pyroscope_peer(shop()).headers.empty());
  PyroscopeOptions options = shop();
  options.user = "Aladdin";
  options.password = "open sesame";
  options.tenant = "one";
  EXPECT_EQ(pyroscope_peer(options).headers,
            (HttpHeaders{{"Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}, {"X-Scope-OrgID", "one"}}));
}

TEST(PyroscopePeer, TriesAgainWhatMayPass) {
  const Peer peer = pyroscope_peer(shop());
  for (unsigned status : {408U, 429U, 500U, 503U}) EXPECT_TRUE(peer.may_pass(status)) << status;
  for (unsigned status : {400U, 401U, 413U, 422U}) EXPECT_FALSE(peer.may_pass(status)) << status;
}

TEST(PyroscopePeer, SendsEachShareOfAHostByItsName) {
  PyroscopeOptions options = shop();
  options.application = "host";
  options.labels.emplace_back("version", "1");
  options.shares = std::make_shared<HostShares>(HostShares::Detail::container);
  Batch batch = timeline(2);
  batch.processes.resize(2);
  batch.processes[1].service = "bank";
  batch.processes[1].environment = "test";
  batch.processes[1].container_id = "c1";
  for (ProfileSample& sample : batch.parts[0].profile.samples) sample.process = 1;
  const auto requests = pyroscope_peer(options).pack(batch);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_THAT(
      requests[0]->query,
      testing::StartsWith("name=" + percent_encoded("bank{container_id=c1,env=test,host=a b}") + "&"));
}

TEST(PyroscopePeer, HintsAtWhatEachAnswerNeeds) {
  const Peer peer = pyroscope_peer(shop());
  EXPECT_THAT(peer.hint(0), testing::HasSubstr("start the server"));
  for (const unsigned status : {300U, 399U})
    EXPECT_THAT(peer.hint(status), testing::HasSubstr("name the right address"));
  for (const unsigned status : {401U, 403U}) EXPECT_THAT(peer.hint(status), testing::HasSubstr("BASIC_AUTH"));
  for (const unsigned status : {404U, 405U}) EXPECT_THAT(peer.hint(status), testing::HasSubstr("is it a"));
  for (const unsigned status : {400U, 413U, 422U})
    EXPECT_THAT(peer.hint(status), testing::HasSubstr("limits"));
  for (const unsigned status : {299U, 402U, 500U}) EXPECT_THAT(peer.hint(status), testing::HasSubstr("log"));
}

TEST(PyroscopePeer, IsTriedAgainWhereItMayBeBusy) {
  for (const unsigned status : {408U, 429U, 500U, 503U})
    EXPECT_TRUE(pyroscope_peer(shop()).may_pass(status)) << status;
  for (const unsigned status : {400U, 404U, 499U})
    EXPECT_FALSE(pyroscope_peer(shop()).may_pass(status)) << status;
}

}  // namespace
}  // namespace ddprof
