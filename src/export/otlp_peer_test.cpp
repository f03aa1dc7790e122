#include "export/otlp_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encode/compression.hpp"
#include "export/upload_destination.hpp"
#include "net/raw_server_fixture.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

Batch batch_with(std::int64_t value) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
  builder.profile().time_ns = 1'714'564'800'000'000'000;
  builder.profile().duration_ns = 2'000'000'000;
  builder.add_sample({{builder.add_named_location("main")}, {value}, {}});
  return Batch::of(std::move(builder).build(), 7);
}

// A collector that answers everything in the same way.
class Collector {
 public:
  explicit Collector(std::string answer)
      : server_([this, answer](const RawServer::Client& client) {
          bodies_.push_back(client.receive_body());
          client.send(answer);
        }) {}

  [[nodiscard]] OtlpOptions options() const {
    OtlpOptions options;
    options.url = server_.url(kOtlpPath);
    options.resource.service_name = "shop";
    options.headers = {{"api-key", "secret"}};
    return options;
  }
  [[nodiscard]] std::vector<std::string> requests() const { return server_.requests(); }
  const std::vector<std::string>& bodies() {
    server_.close();
    return bodies_;
  }

 private:
  std::vector<std::string> bodies_;
  RawServer server_;
};

std::string answer_with(unsigned status, std::string_view body = {}) {
  return fmt::format("HTTP/1.1 {} Some\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

TEST(OtlpPeer, PostsProtobufInGzip) {
  Collector collector(answer_with(200));
  ASSERT_TRUE(UploadDestination(otlp_peer(collector.options()), {}).send(batch_with(1)).ok());
  const std::string request = collector.requests().at(0);
  EXPECT_THAT(request, testing::StartsWith("POST /v1development/profiles HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\napi-key: secret\r\n"));
  const std::string body = collector.bodies().at(0);
  const auto plain = gunzip(std::as_bytes(std::span(body)), 1U << 20U);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_TRUE(is_otlp(*plain));
}

TEST(OtlpPeer, LeavesTimesOutWhereTheyAreNotWanted) {
  const auto body_of = [](bool has_times, bool are_wanted) {
    Batch batch = batch_with(1);
    ProfileSample& sample = batch.parts.front().profile.samples.front();
    if (has_times) sample.times = {1'000'000'001, 1'000'000'002};
    if (has_times) sample.events = 2;
    OtlpOptions options{.url = "http://collector/", .is_compressed = false, .has_times = are_wanted};
    return otlp_peer(options).pack(batch).at(0).value().body;
  };
  EXPECT_EQ(body_of(true, false), body_of(false, false));
  EXPECT_NE(body_of(true, true), body_of(true, false));
}

TEST(OtlpPeer, DoesNotCompressWhereItMayNot) {
  Collector collector(answer_with(200));
  OtlpOptions options = collector.options();
  options.is_compressed = false;
  ASSERT_TRUE(UploadDestination(otlp_peer(options), {}).send(batch_with(1)).ok());
  EXPECT_THAT(collector.requests().at(0), Not(HasSubstr("Content-Encoding")));
  EXPECT_TRUE(is_otlp(collector.bodies().at(0)));
}

TEST(OtlpPeer, KeepsKeysOutOfRequests) {
  const auto request = otlp_peer(Collector("").options()).pack(batch_with(1)).at(0);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->headers, (HttpHeaders{{"Content-Encoding", "gzip"}}));
  EXPECT_EQ(request->sequence, 7U);
}

TEST(OtlpPeer, SendsNothingWithoutSamples) {
  Collector collector(answer_with(500));
  UploadDestination destination(otlp_peer(collector.options()), {});
  for (const Batch& batch : {batch_with(0), Batch::of(Profile(), 0), Batch()}) {
    const auto sent = destination.send(batch);
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    EXPECT_EQ(*sent, Delivery::arrived);
  }
  EXPECT_TRUE(collector.requests().empty());
  EXPECT_EQ(destination.counters().arrived, 0U);
}

TEST(OtlpPeer, SaysOnceWhatACollectorDidNotLikeAndDoesNotSendItAgain) {
  Collector collector(answer_with(200, "\x0a\x0c\x08\x03\x12\x08too deep"));
  std::vector<std::string> said;
  UploadDestination destination(
      otlp_peer(collector.options()),
      {.voice = {.say = [&](const Error& error) { said.push_back(error.message); }}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(destination.send(batch_with(1)).value(), Delivery::arrived);
  EXPECT_EQ(collector.bodies().size(), 3U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr(": answered 200: rejects 3 of the profiles: too deep"));
  EXPECT_EQ(destination.counters().retries, 0U);
}

TEST(OtlpPeer, TriesAgainOnlyWhatTheProtocolAllows) {
  const Peer peer = otlp_peer({});
  for (unsigned status : {429U, 502U, 503U, 504U}) EXPECT_TRUE(peer.may_pass(status)) << status;
  for (unsigned status : {400U, 408U, 413U, 500U, 501U, 505U}) EXPECT_FALSE(peer.may_pass(status)) << status;
}

TEST(OtlpPeer, IsNamedWithoutItsQuery) {
  const Peer peer = otlp_peer({.url = "https://collector/profiles?token=secret"});
  EXPECT_EQ(peer.place, "https://collector/profiles");
  EXPECT_EQ(peer.url, "https://collector/profiles?token=secret");
}

TEST(OtlpPeer, HasAPlaceOfItsOwnBesideOthersOnTheSameServer) {
  EXPECT_EQ(otlp_peer({.url = "http://a:1/v1development/profiles"}).place,
            "http://a:1/v1development/profiles");
}

TEST(OtlpPeer, TellsWhatEachProcessSaysOfItself) {
  OtlpOptions options;
  options.is_compressed = false;
  options.resource.service_name = "host";
  options.resource.service_version = "version of the host";
  options.tells_processes = true;
  const auto body_of = [&](std::uint32_t process) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("samples", "count")};
    builder.add_sample({.locations = {builder.add_named_location("main")},
                        .values = {1},
                        .labels = {builder.text_label(kServiceLabel, "named after its program")},
                        .process = process});
    Batch batch = Batch::of(std::move(builder).build(), 0);
    batch.processes = {{}, {.service = "said by itself"}};
    return otlp_peer(options).pack(batch).at(0).value().body;
  };
  EXPECT_THAT(body_of(1), HasSubstr("said by itself"));
  EXPECT_THAT(body_of(1), testing::Not(HasSubstr("version of the host")));
  EXPECT_THAT(body_of(1), testing::Not(HasSubstr("named after its program")));
  EXPECT_THAT(body_of(0), HasSubstr("named after its program"));
  EXPECT_THAT(body_of(0), HasSubstr("version of the host"));
}

TEST(OtlpPeer, HintsAtWhatEachAnswerNeeds) {
  const Peer peer = otlp_peer({});
  EXPECT_THAT(peer.hint(0), HasSubstr("start the collector"));
  for (const unsigned status : {300U, 399U})
    EXPECT_THAT(peer.hint(status), HasSubstr("name the right address"));
  for (const unsigned status : {401U, 403U}) EXPECT_THAT(peer.hint(status), HasSubstr("HEADERS"));
  for (const unsigned status : {404U, 405U}) EXPECT_THAT(peer.hint(status), HasSubstr("profilesSupport"));
  EXPECT_THAT(peer.hint(413), HasSubstr("smaller"));
  for (const unsigned status : {299U, 400U, 500U}) EXPECT_THAT(peer.hint(status), HasSubstr("log"));
}

TEST(OtlpPeer, IsTriedAgainWhereTheProtocolSaysSo) {
  for (const unsigned status : {429U, 502U, 503U, 504U})
    EXPECT_TRUE(otlp_peer({}).may_pass(status)) << status;
  for (const unsigned status : {400U, 408U, 500U, 501U, 505U})
    EXPECT_FALSE(otlp_peer({}).may_pass(status)) << status;
}

}  // namespace
}  // namespace ddprof
