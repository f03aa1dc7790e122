#include "export/upload_destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "base/scratch_fixture.hpp"
#include "encode/pprof.hpp"
#include "export/datadog_peer.hpp"
#include "net/raw_server_fixture.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::string_view kTaken = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

Profile small_profile() {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  builder.profile().time_ns = 1'714'564'800'000'000'000;
  builder.profile().duration_ns = 2'000'000'000;
  builder.add_sample({{builder.add_named_location("main")}, {1, 10'000'000}, {}});
  return std::move(builder).build();
}

// An agent that answers its requests with these texts, one after the other; the last one from then on.
class Agent {
 public:
  explicit Agent(std::vector<std::string> answers)
      : server_([this, answers](const RawServer::Client& client) {
          bodies_.push_back(client.receive_body());
          client.send(answers[std::min(next_++, answers.size() - 1)]);
        }) {}

  [[nodiscard]] Peer peer() const {
    DatadogOptions options;
    options.agent = {.url = server_.url(), .socket = {}};
    options.identity.service = "shop";
    options.target.entity_id = "ci-1";
    return datadog_peer(options);
  }
  // Once nobody is served any more.
  const std::vector<std::string>& bodies() {
    server_.close();
    return bodies_;
  }
  [[nodiscard]] std::string request() const { return server_.requests().at(0); }

 private:
  std::size_t next_ = 0;
  std::vector<std::string> bodies_;
  RawServer server_;
};

std::string answer(unsigned status, std::string_view headers = {}) {
  return fmt::format("HTTP/1.1 {} Some\r\n{}Content-Length: 0\r\n\r\n", status, headers);
}

TEST(UploadDestination, PostsABodyOfVersion4) {
  Agent agent({std::string(kTaken)});
  const auto sent = UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 3));
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_THAT(agent.request(), testing::StartsWith("POST /profiling/v1/input HTTP/1.1\r\n"));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nContent-Type: multipart/form-data; boundary="));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nDD-EVP-ORIGIN: ddprof\r\nDD-EVP-ORIGIN-VERSION: "));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nDatadog-Entity-ID: ci-1\r\n"));
  const std::string body = agent.bodies().at(0);
  EXPECT_THAT(body, HasSubstr("profile_seq:3"));
  EXPECT_THAT(
      body, HasSubstr(R"("start":"2024-05-01T12:00:00.000000000Z","end":"2024-05-01T12:00:02.000000000Z")"));
  const std::size_t at = body.find("\x28\xb5\x2f\xfd");
  ASSERT_NE(at, std::string::npos);
  std::string pprof(std::size_t{64} << 10U, '\0');
  const std::size_t size =
      ZSTD_decompress(pprof.data(), pprof.size(), body.data() + at, body.rfind("\r\n--") - at);
  ASSERT_EQ(ZSTD_isError(size), 0U);
  const auto profile = decode_pprof(std::as_bytes(std::span(pprof)).first(size));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->text(profile->value_types[0].type), "cpu-time");
}

TEST(UploadDestination, TriesOnceMoreWhatMayPass) {
  for (unsigned status : {408U, 429U, 500U, 503U}) {
    Agent agent({answer(status), std::string(kTaken)});
    EXPECT_TRUE(UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 0)).ok()) << status;
    ASSERT_EQ(agent.bodies().size(), 2U) << status;
    EXPECT_EQ(agent.bodies()[0], agent.bodies()[1]);
  }
}

TEST(UploadDestination, TriesNothingMoreThanThreeTimes) {
  Agent agent({answer(500)});
  const auto sent = UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("answered 500"));
  EXPECT_LE(agent.bodies().size(), 3U);
  EXPECT_GE(agent.bodies().size(), 2U);
}

TEST(UploadDestination, GoesByAProxyOnlyIfItsPeerMay) {
  Agent proxy({std::string(kTaken)});
  Peer peer = proxy.peer();
  ASSERT_EQ(::setenv("http_proxy", peer.place.c_str(), 1), 0);
  Peer direct = peer;
  direct.url = "http://collector.invalid/in";
  EXPECT_FALSE(UploadDestination(direct, {}).send(Batch::of(small_profile(), 0)).ok());
  peer.url = direct.url;
  peer.uses_proxy = true;
  const auto sent = UploadDestination(peer, {}).send(Batch::of(small_profile(), 0));
  ::unsetenv("http_proxy");
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_THAT(proxy.request(), testing::StartsWith("POST http://collector.invalid/in HTTP/1.1\r\n"));
  EXPECT_EQ(proxy.bodies().size(), 1U);
}

TEST(UploadDestination, DoesNotHammerWhoHasNoTls) {
  const RawServer server("HTTP/1.1 400 Bad Request\r\n\r\n");
  Agent other({std::string(kTaken)});
  Peer peer = other.peer();
  peer.url = "https" + server.url().substr(4);
  const auto sent = UploadDestination(peer, {}).send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("does not speak it"));
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(UploadDestination, TakesARefusalAsFinal) {
  for (unsigned status : {302U, 400U, 401U, 403U, 404U, 413U}) {
    Agent agent({answer(status), std::string(kTaken)});
    EXPECT_FALSE(UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 0)).ok()) << status;
    EXPECT_EQ(agent.bodies().size(), 1U) << status;
  }
}

TEST(UploadDestination, DoesNotComeBackWhenThereIsNoTimeToWait) {
  Agent agent({answer(429, "Retry-After: 3600\r\n"), std::string(kTaken)});
  EXPECT_FALSE(UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 0)).ok());
  EXPECT_EQ(agent.bodies().size(), 1U);
}

TEST(UploadDestination, WaitsAsLongAsItIsAskedTo) {
  Agent agent({answer(429, "Retry-After: 1\r\n"), std::string(kTaken)});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(UploadDestination(agent.peer(), {}).send(Batch::of(small_profile(), 0)).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

UploadOptions with_patience(milliseconds patience) {
  UploadOptions options;
  options.patience = patience;
  return options;
}

TEST(UploadDestination, SaysThatNobodyListens) {
  Agent agent({std::string(kTaken)});
  const Peer peer = agent.peer();
  (void)agent.bodies();
  const auto sent =
      UploadDestination(peer, with_patience(milliseconds(50))).send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("Connection refused"));
  EXPECT_THAT(sent.error().hint, HasSubstr("--url"));
}

Peer silent_peer(const RawServer& server) {
  DatadogOptions options;
  options.agent = {.url = server.url(), .socket = {}};
  return datadog_peer(options);
}

TEST(UploadDestination, DoesNotWaitForAnAgentThatHangs) {
  const RawServer silent([](const RawServer::Client& client) { client.wait_until_gone(); });
  const auto sent = UploadDestination(silent_peer(silent), with_patience(milliseconds(100)))
                        .send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("no answer in time"));
}

TEST(UploadDestination, GivesUpWhenTheRunEnds) {
  std::promise<void> asked;
  const RawServer silent([&](const RawServer::Client& client) {
    asked.set_value();
    client.wait_until_gone();
  });
  UploadDestination destination(silent_peer(silent), with_patience(std::chrono::hours(1)));
  auto sent = std::async(std::launch::async, [&] { return destination.send(Batch::of(small_profile(), 0)); });
  asked.get_future().wait();
  destination.give_up();
  EXPECT_THAT(sent.get().error().message, HasSubstr("before the profiler had to end"));
  EXPECT_FALSE(destination.send(Batch::of(small_profile(), 1)).ok());
  EXPECT_EQ(silent.requests().size(), 1U);
}

UploadOptions with_spool(const ScratchFolder& folder) {
  UploadOptions options;
  auto spool = Spool::open(folder.path("spool"), {});
  EXPECT_TRUE(spool.ok());
  options.spool = std::move(spool).value();
  return options;
}

std::vector<std::string> sequences_of(const std::vector<std::string>& bodies) {
  std::vector<std::string> sequences;
  for (const std::string& body : bodies) {
    const std::size_t at = body.find("profile_seq:") + 12;
    sequences.push_back(body.substr(at, body.find_first_not_of("0123456789", at) - at));
  }
  return sequences;
}

TEST(UploadDestination, WhatNobodyTookGoesFirstWhenThePeerIsBack) {
  const ScratchFolder folder;
  const std::string closed = answer(403);
  Agent agent({closed, closed, closed, std::string(kTaken)});
  UploadOptions options = with_spool(folder);
  std::vector<std::string> said, notices;
  options.voice.say = [&](const Error& error) { said.push_back(error.message); };
  options.voice.say_notice = [&](const std::string& text) { notices.push_back(text); };
  UploadDestination destination(agent.peer(), std::move(options));
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
    EXPECT_EQ(destination.send(Batch::of(small_profile(), sequence)).value_or(Delivery::arrived),
              Delivery::waits);
  EXPECT_EQ(destination.counters().waiting, 3U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("answered 403; profiles wait in " + folder.path("spool")));
  EXPECT_TRUE(notices.empty());
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 3)).value_or(Delivery::waits), Delivery::arrived);
  EXPECT_EQ(destination.counters().waiting, 0U);
  EXPECT_EQ(destination.counters().arrived, 4U);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_THAT(notices[0], HasSubstr("takes profiles again, 4 had waited"));
  EXPECT_THAT(sequences_of(agent.bodies()), testing::ElementsAre("0", "0", "0", "0", "1", "2", "3"));
}

TEST(UploadDestination, LeavesAPeerAloneAsLongAsItAsks) {
  const ScratchFolder folder;
  Agent agent({answer(503, "Retry-After: 3600\r\n"), std::string(kTaken)});
  UploadDestination destination(agent.peer(), with_spool(folder));
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
    EXPECT_EQ(destination.send(Batch::of(small_profile(), sequence)).value_or(Delivery::arrived),
              Delivery::waits);
  EXPECT_EQ(agent.bodies().size(), 1U);
  EXPECT_EQ(destination.counters().waiting, 3U);
}

TEST(UploadDestination, SaysTheSameTroubleOnceWhateverTheServerAddsToIt) {
  const ScratchFolder folder;
  std::vector<std::string> answers;
  for (int i = 0; i < 5; ++i)
    answers.push_back(fmt::format("HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nrequest {}", i));
  Agent agent(answers);
  UploadOptions options = with_spool(folder);
  int said = 0;
  options.voice.say = [&](const Error&) { ++said; };
  UploadDestination destination(agent.peer(), std::move(options));
  for (std::uint64_t sequence = 0; sequence < 5; ++sequence)
    EXPECT_TRUE(destination.send(Batch::of(small_profile(), sequence)).ok());
  EXPECT_EQ(agent.bodies().size(), 5U);
  EXPECT_EQ(said, 1);
}

// An agent that fails over one of the batches, and takes the others.
class PickyAgent {
 public:
  explicit PickyAgent(std::string hated)
      : server_([this, hated = std::move(hated)](const RawServer::Client& client) {
          const std::string sequence = sequences_of({client.receive_body()})[0];
          if (sequence != hated) taken_.push_back(sequence);
          client.send(sequence == hated ? answer(500) : std::string(kTaken));
        }) {}
  [[nodiscard]] Peer peer() const {
    DatadogOptions options;
    options.agent = {.url = server_.url(), .socket = {}};
    return datadog_peer(options);
  }
  const std::vector<std::string>& taken() {
    server_.close();
    return taken_;
  }

 private:
  std::vector<std::string> taken_;
  RawServer server_;
};

TEST(UploadDestination, GoesPastABatchThatAServerCannotDigest) {
  const ScratchFolder folder;
  PickyAgent agent("0");
  UploadOptions options = with_spool(folder);
  options.patience = milliseconds(1500);
  UploadDestination destination(agent.peer(), std::move(options));
  constexpr std::uint64_t kBatches = 12;
  for (std::uint64_t sequence = 0; sequence < kBatches; ++sequence)
    EXPECT_TRUE(destination.send(Batch::of(small_profile(), sequence)).ok());
  EXPECT_EQ(destination.counters().waiting, 0U);
  EXPECT_EQ(destination.counters().dropped, 1U);
  EXPECT_THAT(agent.taken(), testing::ElementsAre("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
}

TEST(UploadDestination, WhatCannotWaitIsPostedAtOnce) {
  const ScratchFolder folder;
  Agent agent({answer(403), std::string(kTaken)});
  UploadOptions options = with_spool(folder);
  UploadDestination destination(agent.peer(), std::move(options));
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value_or(Delivery::arrived), Delivery::waits);
  // From now on nothing can be written, not even by root.
  std::filesystem::remove_all(folder.path("spool"));
  folder.write("spool", "a file in its place");
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 1)).value_or(Delivery::waits), Delivery::arrived);
  EXPECT_THAT(sequences_of(agent.bodies()), testing::ElementsAre("0", "1"));
}

TEST(UploadDestination, SaysThatNothingCanWaitAndHowToChangeThat) {
  const ScratchFolder folder;
  Agent agent({answer(403)});
  UploadOptions options = with_spool(folder);
  std::vector<Error> said;
  options.voice.say = [&](const Error& error) { said.push_back(error); };
  UploadDestination destination(agent.peer(), std::move(options));
  std::filesystem::remove_all(folder.path("spool"));
  folder.write("spool", "a file in its place");
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
    const auto sent = destination.send(Batch::of(small_profile(), sequence));
    ASSERT_FALSE(sent.ok());
    EXPECT_THAT(sent.error().message, HasSubstr("answered 403"));
  }
  ASSERT_EQ(said.size(), 2U);
  EXPECT_THAT(said[1].message, HasSubstr("what cannot be delivered is lost now"));
  EXPECT_THAT(said[1].hint, HasSubstr("--spool-dir"));
}

TEST(UploadDestination, KeepsWhatIsLeftWhenTheRunEnds) {
  const ScratchFolder folder;
  std::promise<void> asked;
  const RawServer silent([&](const RawServer::Client& client) {
    asked.set_value();
    client.wait_until_gone();
  });
  UploadOptions options = with_spool(folder);
  options.patience = std::chrono::hours(1);
  UploadDestination destination(silent_peer(silent), std::move(options));
  auto sent = std::async(std::launch::async, [&] { return destination.send(Batch::of(small_profile(), 0)); });
  asked.get_future().wait();
  destination.give_up();
  EXPECT_EQ(sent.get().value_or(Delivery::arrived), Delivery::waits);
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 1)).value_or(Delivery::arrived), Delivery::waits);
  EXPECT_EQ(destination.counters().waiting, 2U);
  EXPECT_EQ(silent.requests().size(), 1U);
}

TEST(UploadDestination, ARefusedKeyKeepsBatchesWaitingAndARefusedBatchDoesNot) {
  const ScratchFolder folder;
  Agent agent({answer(403), std::string(kTaken), answer(413), std::string(kTaken), std::string(kTaken)});
  UploadDestination destination(agent.peer(), with_spool(folder));
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value_or(Delivery::arrived), Delivery::waits);
  // The one that waited is taken, the one behind it is too large.
  const auto sent = destination.send(Batch::of(small_profile(), 1));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("answered 413"));
  EXPECT_EQ(destination.counters().waiting, 0U);
  EXPECT_EQ(destination.counters().dropped, 0U) << "it is counted as failed";
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 2)).value_or(Delivery::waits), Delivery::arrived);
}

// A batch that a peer gets as four requests, "0" to "3".
Peer with_four_requests(Peer peer) {
  peer.pack = [](const Batch& batch) {
    std::vector<Result<UploadRequest>> requests;
    for (int i = 0; i < 4; ++i) {
      UploadRequest request;
      request.sequence = batch.sequence;
      request.content_type = "text/plain";
      request.body = fmt::format("{}-{}", batch.sequence, i);
      requests.emplace_back(std::move(request));
    }
    return requests;
  };
  return peer;
}

class UploadOfShares : public testing::Test {
 protected:
  UploadOptions with_spool() {
    UploadOptions options;
    options.spool = Spool::open(scratch_.path("spool"), {}).value();
    return options;
  }

 private:
  ScratchFolder scratch_;
};

TEST_F(UploadOfShares, ArriveInTheirOrder) {
  Agent agent({std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), with_spool());
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value(), Delivery::arrived);
  EXPECT_THAT(agent.bodies(), testing::ElementsAre("0-0", "0-1", "0-2", "0-3"));
  EXPECT_EQ(destination.counters().arrived, 4U);
  EXPECT_EQ(destination.counters().bytes, 12U);
}

TEST_F(UploadOfShares, WaitFromTheOneOnThatAPeerFailedOverAndArriveOnce) {
  Agent agent({std::string(kTaken), answer(403), std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), with_spool());
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value(), Delivery::waits);
  EXPECT_EQ(destination.counters().arrived, 1U);
  EXPECT_EQ(destination.counters().waiting, 3U);
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 1)).value(), Delivery::arrived);
  EXPECT_THAT(agent.bodies(),
              testing::ElementsAre("0-0", "0-1", "0-1", "0-2", "0-3", "1-0", "1-1", "1-2", "1-3"));
  EXPECT_EQ(destination.counters().arrived, 8U);
  EXPECT_EQ(destination.counters().waiting, 0U);
  EXPECT_EQ(destination.counters().dropped, 0U);
}

TEST_F(UploadOfShares, OneThatIsRefusedKeepsNoOtherFromArriving) {
  Agent agent({std::string(kTaken), answer(413), std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), with_spool());
  const auto sent = destination.send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("answered 413 (1 of 4 uploads are lost)"));
  EXPECT_THAT(agent.bodies(), testing::ElementsAre("0-0", "0-1", "0-2", "0-3"));
  EXPECT_EQ(destination.counters().arrived, 3U);
  EXPECT_EQ(destination.counters().waiting, 0U);
}

TEST_F(UploadOfShares, OneThatIsRefusedAfterItWaitedIsTheOnlyOneLost) {
  Agent agent({answer(403), std::string(kTaken), answer(413), std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), with_spool());
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value(), Delivery::waits);
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 1)).value(), Delivery::arrived);
  EXPECT_EQ(destination.counters().arrived, 7U);
  EXPECT_EQ(destination.counters().dropped, 1U);
}

TEST_F(UploadOfShares, OneThatCannotBeMadeKeepsNoOtherFromArriving) {
  Agent agent({std::string(kTaken)});
  Peer peer = with_four_requests(agent.peer());
  peer.pack = [whole = peer.pack](const Batch& batch) {
    auto requests = whole(batch);
    requests[2] = make_error(ErrorCode::exhausted, "too large");
    return requests;
  };
  UploadDestination destination(peer, with_spool());
  const auto sent = destination.send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().message, "too large (1 of 4 uploads are lost)");
  EXPECT_THAT(agent.bodies(), testing::ElementsAre("0-0", "0-1", "0-3"));
}

TEST_F(UploadOfShares, AreTriedAllWithoutASpool) {
  Agent agent({answer(403), std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), {});
  const auto sent = destination.send(Batch::of(small_profile(), 0));
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(agent.bodies(), testing::ElementsAre("0-0", "0-1", "0-2", "0-3"));
  EXPECT_EQ(destination.counters().arrived, 3U);
}

TEST_F(UploadOfShares, AllWaitWhenThereIsNoTime) {
  Agent agent({std::string(kTaken)});
  UploadDestination destination(with_four_requests(agent.peer()), with_spool());
  destination.give_up();
  EXPECT_EQ(destination.send(Batch::of(small_profile(), 0)).value(), Delivery::waits);
  EXPECT_EQ(destination.counters().waiting, 4U);
  EXPECT_THAT(agent.bodies(), testing::ElementsAre());
}

}  // namespace
}  // namespace ddprof
