#include "session/thread_contexts.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "process/published_context_fixture.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

SampleContext made_of(std::vector<ThreadContext::Attribute> attributes,
                      const std::vector<std::string>& keys) {
  return to_sample_context({.span_id = 7, .attributes = std::move(attributes)}, keys);
}

TEST(ThreadContexts, KnowTheLocalRootSpanByItsKey) {
  EXPECT_EQ(made_of({{0, "00000000000000ff"}}, {"datadog.local_root_span_id"}).local_root_span_id, 255U);
  EXPECT_EQ(made_of({{0, "none"}}, {"datadog.local_root_span_id"}).local_root_span_id, std::nullopt);
}

TEST(ThreadContexts, TakeTheEndpointFromTheBestKeyThatThereIs) {
  const std::vector<std::string> keys{"http.route", "datadog.trace_endpoint"};
  EXPECT_EQ(made_of({{0, "/a/{id}"}}, keys).endpoint, "/a/{id}");
  EXPECT_EQ(made_of({{1, "GET /a"}, {0, "/a/{id}"}}, keys).endpoint, "GET /a");
}

TEST(ThreadContexts, KeepOtherAttributesUnderTheirOwnNames) {
  EXPECT_THAT(made_of({{0, "gold"}}, {"customer"}).others, ElementsAre(Pair("customer", "gold")));
}

TEST(ThreadContexts, LeaveOutWhatHasNoNameOrANameThatMeansSomethingElse) {
  const std::vector<std::string> keys{"end_timestamp_ns", "thread id", "", "span id"};
  EXPECT_THAT(made_of({{0, "1"}, {1, "2"}, {2, "3"}, {3, "4"}, {9, "5"}}, keys).others, IsEmpty());
}

// This process publishes what the keys of its threads mean, and has samples.
class PublishedKeysTest : public testing::Test {
 protected:
  struct Source final : ThreadContextSource {
    bool read_thread_contexts(Pid, const ThreadVariable&) override { return true; }
  };

  // A sample of a thread that works for span 7 and says "/buy" under this key.
  std::optional<SampleContext> sample(std::uint8_t key = 0, Pid pid = Pid{::getpid()}) {
    record_ = std::string(23, '\0') + "\x07\x01" + std::string(1, '\0') + "\x06" + std::string(1, '\0') +
              static_cast<char>(key) + "\x04/buy";
    SampleEvent event;
    event.pid = pid;
    event.thread_context = std::as_bytes(std::span(record_));
    return contexts_.of(event);
  }

  Source source_;
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  ProcessTable processes_{files_};
  ThreadContexts contexts_{&source_, processes_, files_};
  std::string record_;
};

TEST_F(PublishedKeysTest, AreReadBeforeASampleMeansAnything) {
  const PublishedHere published(context_with_thread_keys({"http.route"}));
  EXPECT_EQ(sample(), std::nullopt);
  contexts_.look_around(10s);
  const auto context = sample();
  ASSERT_TRUE(context);
  EXPECT_EQ(context->span_id, 7U);
  EXPECT_EQ(context->endpoint, "/buy");
  contexts_.forget(Pid{::getpid()});
  EXPECT_EQ(sample(), std::nullopt) << "it may be another program";
}

TEST_F(PublishedKeysTest, ANewProcessDoesNotWaitForTheTurnOfOthers) {
  const PublishedHere published(context_with_thread_keys({"http.route"}));
  sample(0, Pid{1 << 23});
  contexts_.look_around(10s);
  sample();
  contexts_.look_around(10s + 1ms);
  EXPECT_TRUE(sample());
}

TEST_F(PublishedKeysTest, AreReadAgainForAKeyThatIsNotKnown) {
  {
    const PublishedHere published(context_with_thread_keys({"http.route"}));
    sample();
    contexts_.look_around(10s);
  }
  const PublishedHere published(context_with_thread_keys({"http.route", "trace.endpoint"}));
  EXPECT_EQ(sample()->endpoint, "/buy");
  contexts_.look_around(10s + 1ms);
  EXPECT_EQ(sample(1)->endpoint, "") << "a key that is known is no reason to read them again";
  contexts_.look_around(10s + 2ms);
  EXPECT_EQ(sample(1)->endpoint, "/buy");
}

TEST_F(PublishedKeysTest, OfAProcessWithoutSamplesAreNotRead) {
  const PublishedHere published(context_with_thread_keys({"http.route"}));
  contexts_.look_around(10s);
  EXPECT_EQ(sample(), std::nullopt);
}

TEST_F(PublishedKeysTest, MeanNothingWhereSamplesComeWithoutContexts) {
  const PublishedHere published(context_with_thread_keys({"http.route"}));
  ThreadContexts without(nullptr, processes_, files_);
  without.look_around(10s);
  EXPECT_EQ(without.of({}), std::nullopt);
}

TEST(ThreadContexts, KeepThirtyTwoOtherAttributes) {
  std::vector<std::string> keys;
  std::vector<ThreadContext::Attribute> attributes;
  for (std::uint8_t key = 0; key < 33; ++key) {
    keys.push_back("key" + std::to_string(key));
    attributes.push_back({key, "x"});
  }
  EXPECT_EQ(made_of(attributes, keys).others.size(), 32U);
}

TEST(ThreadContexts, ALocalRootSpanHasSixteenDigitsAtMost) {
  const std::vector<std::string> keys{"datadog.local_root_span_id"};
  EXPECT_EQ(made_of({{0, "ffffffffffffffff"}}, keys).local_root_span_id, ~std::uint64_t{0});
  for (const char* text : {"00000000000000001", "1x", "x"})
    EXPECT_EQ(made_of({{0, text}}, keys).local_root_span_id, std::nullopt) << text;
}

}  // namespace
}  // namespace ddprof
