#include "net/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tls_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

Error failure_of(const std::string& url, const HttpOptions& options) {
  std::string body;
  auto answer = get_text(url, options, body);
  return answer ? Error{ErrorCode::failed, "it did not fail"} : std::move(answer).error();
}

HttpOptions trusting(const TlsServer& server) {
  HttpOptions options;
  options.certificate_file = server.certificate_file();
  return options;
}

std::string as_https(const RawServer& server) { return "https" + server.url().substr(4); }

TEST(Tls, GetsAFileFromAServerThatIsTrusted) {
  const TlsServer server;
  std::string body;
  const auto answer = get_text(server.url("localhost"), trusting(server), body);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(body, "over TLS");
}

TEST(Tls, RefusesAServerThatNobodyTrusts) {
  const TlsServer server;
  const Error error = failure_of(server.url("localhost"), {});
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message,
              HasSubstr("certificate refused: signed by tester, whom this system does not trust"));
  EXPECT_THAT(error.hint, HasSubstr("--ca-file FILE"));
  const TlsServer other;
  const Error wrong = failure_of(server.url("localhost"), trusting(other));
  EXPECT_THAT(wrong.message, HasSubstr("who is not in " + other.certificate_file()));
}

TEST(Tls, RefusesAServerWithAnothersCertificate) {
  const TlsServer server;
  const Error error = failure_of(server.url("127.0.0.1"), trusting(server));
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("it is for localhost, intake.test, not for 127.0.0.1"));
  EXPECT_THAT(error.hint, HasSubstr("name the host"));
}

TEST(Tls, RefusesACertificateOutsideOfItsTime) {
  const TlsServer expired({"20200101000000Z", "20210203000000Z"}, "");
  const Error late = failure_of(expired.url("localhost"), trusting(expired));
  EXPECT_THAT(late.message, HasSubstr("that of localhost, intake.test ended on 2021-02-03"));
  EXPECT_THAT(late.hint, MatchesRegex("renew it, or set the clock, if today is not 20[0-9-]*"));
  const TlsServer future({"20980304000000Z", "20990101000000Z"}, "");
  const Error early = failure_of(future.url("localhost"), trusting(future));
  EXPECT_THAT(early.message, HasSubstr("only begins on 2098-03-04"));
  EXPECT_THAT(early.hint, HasSubstr("set the clock"));
}

TEST(Tls, RefusesVersionsThatAreTooOld) {
  const TlsServer server({}, "-tls1_1 -cipher ALL:@SECLEVEL=0");
  const Error error = failure_of(server.url("localhost"), trusting(server));
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("versions that are too old"));
  EXPECT_THAT(error.hint, HasSubstr("TLS 1.2"));
}

TEST(Tls, SaysThatAServerWantsACertificateOfOurs) {
  const TlsServer server({}, "-Verify 1");
  const Error error = failure_of(server.url("localhost"), trusting(server));
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("it wants a certificate of ours"));
}

TEST(Tls, SaysThatTheOtherSideSpeaksPlainHttp) {
  const RawServer server("HTTP/1.1 400 Bad Request\r\n\r\n");
  const Error error = failure_of(as_https(server), {});
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("does not speak it"));
  EXPECT_THAT(error.hint, HasSubstr("http:// in place of https://"));
}

TEST(Tls, SaysThatTheOtherSideSpeaksTls) {
  const RawServer server(std::string("\x15\x03\x01\x00\x02\x02\x0a", 7));  // an alert: unexpected message
  const Error error = failure_of(server.url(), {});
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("the other side speaks TLS"));
  EXPECT_EQ(error.hint, "https:// in place of http://");
}

TEST(Tls, MayRecoverFromAServerThatBreaksOff) {
  const RawServer server("");
  const Error error = failure_of(as_https(server), {});
  EXPECT_EQ(error.code, ErrorCode::failed);
  EXPECT_THAT(error.message, HasSubstr("closed in the middle"));
}

TEST(Tls, DoesNotWaitForAServerThatSaysNothing) {
  const RawServer server([](const RawServer::Client& client) { client.wait_until_gone(); });
  HttpOptions options;
  options.connect_timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(failure_of(as_https(server), options).message, HasSubstr("no answer in time"));
}

TEST(Tls, SaysWhichCertificatesCannotBeRead) {
  const ScratchFolder folder;
  folder.write("none.pem", "no certificates\n");
  EXPECT_EQ(check_certificate_file("/nonexistent").error().message,
            "read certificates /nonexistent: No such file or directory");
  EXPECT_THAT(check_certificate_file(folder.path("none.pem")).error().message, HasSubstr("it holds none"));
  EXPECT_FALSE(check_certificate_file(folder.path()).ok());
  const TlsServer server;
  EXPECT_TRUE(check_certificate_file(server.certificate_file()).ok());
  HttpOptions options;
  options.certificate_file = "/nonexistent";
  EXPECT_THAT(failure_of(server.url("localhost"), options).message,
              HasSubstr("read certificates /nonexistent"));
}

}  // namespace
}  // namespace ddprof
