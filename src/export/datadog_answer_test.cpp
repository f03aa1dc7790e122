#include "export/datadog_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

DatadogVerdict verdict(unsigned status, std::string body = {}, std::string retry_after = {}) {
  return judge(HttpPostAnswer{status, std::move(retry_after), "", std::move(body)}, "http://agent");
}

TEST(DatadogAnswer, IsGoodFrom200To299) {
  for (unsigned status : {200U, 202U, 299U}) EXPECT_FALSE(verdict(status).refusal.has_value()) << status;
  for (unsigned status : {101U, 199U, 300U, 400U, 500U})
    EXPECT_TRUE(verdict(status).refusal.has_value()) << status;
}

TEST(DatadogAnswer, MayPassWhenTheServerIsToBlame) {
  for (unsigned status : {408U, 429U, 500U, 502U, 503U, 504U})
    EXPECT_TRUE(verdict(status).may_pass) << status;
  for (unsigned status : {301U, 400U, 401U, 403U, 404U, 413U})
    EXPECT_FALSE(verdict(status).may_pass) << status;
  EXPECT_TRUE(judge(make_error(ErrorCode::failed, "refused"), "x").may_pass);
}

TEST(DatadogAnswer, SaysWhatToDo) {
  for (unsigned status : {302U, 400U, 403U, 404U, 413U, 429U, 500U})
    EXPECT_FALSE(verdict(status).refusal->hint.empty()) << status;
  EXPECT_THAT(verdict(404).refusal->hint, HasSubstr("7.20"));
  EXPECT_FALSE(judge(make_error(ErrorCode::failed, "refused"), "x").refusal->hint.empty());
}

TEST(DatadogAnswer, QuotesOneHarmlessLine) {
  const std::string message = verdict(500, "Profile \033[2Jforwarder is OFF\nmore").refusal->message;
  EXPECT_EQ(message, "post to http://agent: answered 500: Profile ?[2Jforwarder is OFF");
  EXPECT_LT(verdict(500, std::string(4000, 'x')).refusal->message.size(), 200U);
}

TEST(DatadogAnswer, ReadsWhenToComeBack) {
  EXPECT_EQ(verdict(429, "", "17").retry_after, std::chrono::seconds(17));
  for (const char* text : {"", "-1", "1.5", "99999999999", "Fri, 31 Dec 1999 23:59:59 GMT"})
    EXPECT_EQ(verdict(429, "", text).retry_after, std::nullopt) << text;
}

}  // namespace
}  // namespace ddprof
