#include "export/answer.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

Peer agent() {
  Peer peer;
  peer.place = "http://agent";
  peer.may_pass = [](unsigned status) { return status == 408 || status == 429 || status >= 500; };
  peer.hint = [](unsigned status) { return fmt::format("the hint of {}", status); };
  return peer;
}

Answer answer_to(unsigned status, std::string body = {}, std::string retry_after = {}) {
  return judge(HttpPostAnswer{status, std::move(retry_after), "", std::move(body)}, agent());
}

TEST(Answer, IsGoodFrom200To299) {
  for (unsigned status : {200U, 202U, 299U}) EXPECT_EQ(answer_to(status).kind, Answer::Kind::taken) << status;
  for (unsigned status : {101U, 199U, 300U, 400U, 500U})
    EXPECT_TRUE(answer_to(status).error.has_value()) << status;
}

TEST(Answer, TellsWhatMayPassFromWhatMustBeMendedAndWhatNeverWillBeTaken) {
  for (unsigned status : {408U, 429U, 500U, 502U, 503U, 504U})
    EXPECT_EQ(answer_to(status).kind, Answer::Kind::later) << status;
  EXPECT_EQ(judge(make_error(ErrorCode::failed, "refused"), agent()).kind, Answer::Kind::later);
  for (unsigned status : {199U, 301U, 302U, 399U, 401U, 403U, 404U, 405U, 407U})
    EXPECT_EQ(answer_to(status).kind, Answer::Kind::closed) << status;
  for (unsigned status : {400U, 413U, 422U})
    EXPECT_EQ(answer_to(status).kind, Answer::Kind::refused) << status;
}

TEST(Answer, HasTheCureOfItsPeer) {
  EXPECT_EQ(answer_to(404).error->hint, "the hint of 404");
  EXPECT_EQ(judge(make_error(ErrorCode::failed, "refused"), agent()).error->hint, "the hint of 0");
}

TEST(Answer, IsGoodAlsoWhereThePeerObjects) {
  Peer peer = agent();
  peer.objection = [](std::string_view answer) { return std::string(answer) + "\nmore"; };
  const Answer found = judge(HttpPostAnswer{200, "", "", "one \033 rejected"}, peer);
  EXPECT_EQ(found.kind, Answer::Kind::taken);
  EXPECT_FALSE(found.error.has_value());
  ASSERT_TRUE(found.objection.has_value());
  EXPECT_EQ(found.objection->message, "post to http://agent: answered 200: one ? rejected");
  EXPECT_EQ(found.objection->hint, "the hint of 200");
  peer.objection = [](std::string_view) { return std::string(); };
  EXPECT_FALSE(judge(HttpPostAnswer{200, "", "", "fine"}, peer).objection.has_value());
}

TEST(Answer, WaitsForWhoeverMendsCertificatesAndProxies) {
  const Error error = with_hint(make_error(ErrorCode::permission_denied, "certificate refused"), "renew it");
  const Answer untrusted = judge(error, agent());
  EXPECT_EQ(untrusted.kind, Answer::Kind::closed);
  EXPECT_EQ(untrusted.error->hint, "renew it");
  EXPECT_NE(answer_to(407).error->hint.find("http_proxy="), std::string::npos);
}

// The words of nginx 1.22 and of Go 1.19.
TEST(Answer, KnowsWhoWantsHttps) {
  for (const char* body : {"<center>The plain HTTP request was sent to HTTPS port</center>",
                           "Client sent an HTTP request to an HTTPS server.\n"}) {
    EXPECT_EQ(answer_to(400, body).kind, Answer::Kind::closed);
    EXPECT_EQ(answer_to(400, body).error->hint, "https:// in place of http://");
  }
  EXPECT_EQ(answer_to(400, "bad HTTP request").kind, Answer::Kind::refused);
}

TEST(Answer, QuotesOneHarmlessLine) {
  const std::string message = answer_to(500, "Profile \033[2Jforwarder is OFF\nmore").error->message;
  EXPECT_EQ(message, "post to http://agent: answered 500: Profile ?[2Jforwarder is OFF");
  EXPECT_LT(answer_to(500, std::string(4000, 'x')).error->message.size(), 200U);
}

TEST(Answer, ReadsWhenToComeBack) {
  EXPECT_EQ(answer_to(429, "", "17").retry_after, std::chrono::seconds(17));
  EXPECT_EQ(answer_to(429, "", "Fri, 31 Dec 1999 23:59:59 GMT").retry_after, std::chrono::seconds(0));
  EXPECT_EQ(answer_to(429, "", "soon").retry_after, std::nullopt);
}

TEST(Answer, NamesWhereItWasRedirectedToWithoutWhatIsNobodysBusiness) {
  const auto redirected = judge(HttpPostAnswer{302, "", "https://login\x9b/in?token=secret", ""}, agent());
  EXPECT_EQ(redirected.error->message, "post to http://agent: answered 302, redirected to https://login?/in");
}

}  // namespace
}  // namespace ddprof
