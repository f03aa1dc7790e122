#include "net/proxy_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_post.hpp"
#include "net/tls_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Options with which everything but exceptions goes by `address`.
HttpOptions by_proxy(const std::string& address) {
  HttpOptions options;
  options.proxies = [address](const std::string& name) { return name == "all_proxy" ? address : ""; };
  return options;
}

std::string with_user(const RawServer& proxy) { return "http://me:secret@" + proxy.url().substr(7); }

Error failure_by(const std::string& address, const std::string& url = "https://intake.test/") {
  std::string body;
  auto answer = get_text(url, by_proxy(address), body);
  return answer ? Error{ErrorCode::failed, "it did not fail"} : std::move(answer).error();
}

TEST(ProxyConnection, CarriesPlainRequestsThatNameTheWholeUrl) {
  const RawServer proxy(http_answer("by proxy"));
  std::string body;
  const auto answer = get_text("http://collector.test:4318/v1?x", by_proxy(with_user(proxy)), body);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(body, "by proxy");
  const std::string request = proxy.requests().at(0);
  EXPECT_THAT(request,
              StartsWith("GET http://collector.test:4318/v1?x HTTP/1.1\r\nHost: collector.test:4318\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
}

TEST(ProxyConnection, CarriesPosts) {
  const RawServer proxy(
      [](const RawServer::Client& client) { client.send(http_answer(client.receive_body())); });
  const std::string body = "profile";
  const HttpPost post{.url = "http://collector.test/in",
                      .socket = {},
                      .content_type = "text/plain",
                      .headers = {},
                      .body = std::as_bytes(std::span(body))};
  const auto answer = http_post(post, by_proxy(proxy.url()));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_THAT(proxy.requests().at(0),
              StartsWith("POST http://collector.test/in HTTP/1.1\r\nHost: collector.test\r\n"));
  EXPECT_THAT(proxy.requests().at(0), Not(HasSubstr("Proxy-Authorization")));
}

// The name exists nowhere: only the proxy knows where it is, and the certificate is checked for it.
TEST(ProxyConnection, IsATunnelToTheRealHost) {
  const TlsServer server;
  const RawServer proxy([&](const RawServer::Client& client) {
    client.send("HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n");
    client.relay_to(server.port());
  });
  HttpOptions options = by_proxy(with_user(proxy));
  options.certificate_file = server.certificate_file();
  std::string body;
  const auto answer = get_text(server.url("intake.test"), options, body);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(body, "over TLS");
  const std::string end = "intake.test:" + std::to_string(server.port());
  EXPECT_THAT(proxy.requests().at(0),
              StartsWith("CONNECT " + end + " HTTP/1.1\r\nHost: " + end + "\r\nUser-Agent: ddprof/"));
  EXPECT_THAT(proxy.requests().at(0), HasSubstr("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
  const auto other = get_text(server.url("other.test"), options, body);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("not for other.test"));
}

TEST(ProxyConnection, IsNotMadeForThisMachineAndForExceptions) {
  const RawServer server(http_answer("direct"));
  std::string body;
  ASSERT_TRUE(get_text(server.url(), by_proxy("http://127.0.0.1:1"), body).ok());
  EXPECT_EQ(body, "direct");
}

TEST(ProxyConnection, SaysThatTheProxyWantsAPassword) {
  const RawServer proxy("HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n");
  const Error without = failure_by(proxy.url());
  EXPECT_EQ(without.code, ErrorCode::permission_denied);
  EXPECT_EQ(without.message,
            "get https://intake.test/: proxy " + proxy.url() + ": it wants a user and password (407)");
  EXPECT_THAT(without.hint, StartsWith("all_proxy=http://user:password@"));
  const Error with = failure_by(with_user(proxy));
  EXPECT_THAT(with.message, HasSubstr("does not take the user and password"));
  EXPECT_THAT(with.message + with.hint, Not(HasSubstr("secret")));
}

TEST(ProxyConnection, SaysThatTheProxyDoesNotLetUsPass) {
  for (const auto& [status, code] : {std::pair("403", ErrorCode::permission_denied),
                                     {"405", ErrorCode::permission_denied},
                                     {"502", ErrorCode::failed},
                                     {"101", ErrorCode::permission_denied}}) {
    const RawServer proxy("HTTP/1.1 " + std::string(status) + " No\r\nContent-Length: 1\r\n\r\nx");
    const Error error = failure_by(proxy.url());
    EXPECT_EQ(error.code, code) << status;
    EXPECT_THAT(error.message, HasSubstr(proxy.url() + ": no way to intake.test:443: it answered " + status));
    EXPECT_THAT(error.hint, HasSubstr("NO_PROXY=intake.test"));
  }
}

TEST(ProxyConnection, SaysThatThereIsNoProxy) {
  RawServer proxy("");
  proxy.close();
  for (const char* url : {"https://intake.test/", "http://intake.test/"}) {
    const Error error = failure_by(with_user(proxy), url);
    EXPECT_EQ(error.code, ErrorCode::failed);
    EXPECT_THAT(error.message, HasSubstr("proxy " + proxy.url() + ": connect: Connection refused"));
    EXPECT_EQ(error.hint, "correct all_proxy, or go without: NO_PROXY=intake.test");
  }
}

TEST(ProxyConnection, RefusesWhatIsNoAnswer) {
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n\r\n"), std::string(), std::string("HTTP/1.1 200"),
        std::string("HTTP/1.1 200 OK\r\n\r\nnot for you"),
        "HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x')}) {
    const RawServer proxy(text);
    const Error error = failure_by(proxy.url());
    EXPECT_EQ(error.code, ErrorCode::corrupt) << text.substr(0, 60) << error.message;
  }
}

TEST(ProxyConnection, DoesNotWaitForAProxyThatSaysNothing) {
  const RawServer proxy([](const RawServer::Client& client) { client.wait_until_gone(); });
  HttpOptions options = by_proxy(proxy.url());
  options.connect_timeout = std::chrono::milliseconds(100);
  std::string body;
  EXPECT_THAT(get_text("https://intake.test/", options, body).error().message,
              HasSubstr("no answer in time"));
}

TEST(ProxyConnection, NamesAProxyThatShouldSpeakTls) {
  const RawServer proxy("HTTP/1.1 400 Bad Request\r\n\r\n");
  const Error error = failure_by("https" + proxy.url().substr(4));
  EXPECT_THAT(error.message,
              HasSubstr("proxy https" + proxy.url().substr(4) + ": TLS: the other side does not"));
}

}  // namespace
}  // namespace ddprof
