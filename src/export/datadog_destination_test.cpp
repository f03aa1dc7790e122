#include "export/datadog_destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "encode/pprof.hpp"
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

  [[nodiscard]] DatadogOptions options() const {
    DatadogOptions options;
    options.agent = {.url = server_.url(), .socket = {}};
    options.identity.service = "shop";
    options.headers = {{"Datadog-Entity-ID", "ci-1"}};
    return options;
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

TEST(DatadogDestination, PostsABodyOfVersion4) {
  Agent agent({std::string(kTaken)});
  const auto sent = DatadogDestination(agent.options()).send(small_profile(), 3);
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_THAT(agent.request(), testing::StartsWith("POST /profiling/v1/input HTTP/1.1\r\n"));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nContent-Type: multipart/form-data; boundary="));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nDD-EVP-ORIGIN: ddprof\r\nDD-EVP-ORIGIN-VERSION: "));
  EXPECT_THAT(agent.request(), HasSubstr("\r\nDatadog-Entity-ID: ci-1\r\n"));
  const std::string body = agent.bodies().at(0);
  EXPECT_THAT(body, HasSubstr("profile_seq:3"));
  EXPECT_THAT(
      body, HasSubstr(R"("start":"2024-05-01T12:00:00.000000000Z","end":"2024-05-01T12:00:02.000000000Z")"));
  const std::size_t at = body.find("\x1f\x8b");
  ASSERT_NE(at, std::string::npos);
  const auto bytes = std::as_bytes(std::span(body)).subspan(at, body.rfind("\r\n--") - at);
  const auto profile = decode_pprof(bytes);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->text(profile->value_types[0].type), "cpu-time");
}

TEST(DatadogDestination, TriesOnceMoreWhatMayPass) {
  for (unsigned status : {408U, 429U, 500U, 503U}) {
    Agent agent({answer(status), std::string(kTaken)});
    EXPECT_TRUE(DatadogDestination(agent.options()).send(small_profile(), 0).ok()) << status;
    ASSERT_EQ(agent.bodies().size(), 2U) << status;
    EXPECT_EQ(agent.bodies()[0], agent.bodies()[1]);
  }
}

TEST(DatadogDestination, TriesNothingMoreThanTwice) {
  Agent agent({answer(500)});
  const auto sent = DatadogDestination(agent.options()).send(small_profile(), 0);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("answered 500"));
  EXPECT_EQ(agent.bodies().size(), 2U);
}

TEST(DatadogDestination, TakesARefusalAsFinal) {
  for (unsigned status : {302U, 400U, 401U, 403U, 404U, 413U}) {
    Agent agent({answer(status), std::string(kTaken)});
    EXPECT_FALSE(DatadogDestination(agent.options()).send(small_profile(), 0).ok()) << status;
    EXPECT_EQ(agent.bodies().size(), 1U) << status;
  }
}

TEST(DatadogDestination, DoesNotComeBackWhenThereIsNoTimeToWait) {
  Agent agent({answer(429, "Retry-After: 3600\r\n"), std::string(kTaken)});
  EXPECT_FALSE(DatadogDestination(agent.options()).send(small_profile(), 0).ok());
  EXPECT_EQ(agent.bodies().size(), 1U);
}

TEST(DatadogDestination, WaitsAsLongAsItIsAskedTo) {
  Agent agent({answer(429, "Retry-After: 1\r\n"), std::string(kTaken)});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(DatadogDestination(agent.options()).send(small_profile(), 0).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(DatadogDestination, SaysThatNobodyListens) {
  Agent agent({std::string(kTaken)});
  DatadogOptions options = agent.options();
  options.patience = milliseconds(50);
  (void)agent.bodies();
  const auto sent = DatadogDestination(options).send(small_profile(), 0);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("Connection refused"));
  EXPECT_THAT(sent.error().hint, HasSubstr("--url"));
}

TEST(DatadogDestination, DoesNotWaitForAnAgentThatHangs) {
  const RawServer silent([](const RawServer::Client& client) { client.wait_until_gone(); });
  DatadogOptions options;
  options.agent = {.url = silent.url(), .socket = {}};
  options.patience = milliseconds(100);
  const auto sent = DatadogDestination(options).send(small_profile(), 0);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("no answer in time"));
}

TEST(DatadogDestination, GivesUpWhenTheRunEnds) {
  std::promise<void> asked;
  const RawServer silent([&](const RawServer::Client& client) {
    asked.set_value();
    client.wait_until_gone();
  });
  DatadogOptions options;
  options.agent = {.url = silent.url(), .socket = {}};
  options.patience = std::chrono::hours(1);
  DatadogDestination destination(options);
  auto sent = std::async(std::launch::async, [&] { return destination.send(small_profile(), 0); });
  asked.get_future().wait();
  destination.give_up();
  EXPECT_THAT(sent.get().error().message, HasSubstr("before the profiler had to end"));
  EXPECT_FALSE(destination.send(small_profile(), 1).ok());
  EXPECT_EQ(silent.requests().size(), 1U);
}

}  // namespace
}  // namespace ddprof
