#include "session/thread_contexts.hpp"

#include <gmock/gmock.h>

namespace ddprof {
namespace {

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

}  // namespace
}  // namespace ddprof
