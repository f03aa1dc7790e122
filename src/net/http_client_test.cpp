#include "net/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kShort{100};

class HttpClient : public testing::Test {
 protected:
  Result<HttpAnswer> get(const std::string& url) {
    return http_get(url, options_, [this](std::span<const std::byte> piece) -> Result<void> {
      body_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return {};
    });
  }
  // The error of a get that must fail.
  Error failure(const std::string& url) {
    auto answer = get(url);
    return answer ? Error{ErrorCode::failed, "it did not fail"} : std::move(answer).error();
  }

  HttpOptions options_;
  std::string body_;
};

TEST_F(HttpClient, GetsTheBodyOfAGoodAnswer) {
  const std::string body(1000000, 'b');
  const RawServer server(http_answer(body));
  options_.user_agent = "tester/7";
  const auto answer = get(server.url("/some/path?query"));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 200U);
  EXPECT_EQ(answer->body_bytes, body.size());
  EXPECT_EQ(body_, body);
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("GET /some/path?query HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nUser-Agent: tester/7\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nHost: 127.0.0.1:"));
}

TEST_F(HttpClient, GetsBodiesInChunksAndUpToTheEnd) {
  const RawServer chunks(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(get(chunks.url()).ok());
  EXPECT_EQ(body_, "abcde");
  body_.clear();
  const RawServer until_end("HTTP/1.0 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(get(until_end.url()).ok());
  EXPECT_EQ(body_, "all of it");
  body_.clear();
  const RawServer empty("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(get(empty.url())->body_bytes, 0U);
}

TEST_F(HttpClient, KeepsTheBodiesOfOtherAnswersFromTheSink) {
  const RawServer server("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone");
  const auto answer = get(server.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 404U);
  EXPECT_EQ(body_, "");
}

TEST_F(HttpClient, DoesNotWaitForASilentServer) {
  const RawServer server([](const RawServer::Client& client) { client.wait_until_gone(); });
  options_.first_byte_timeout = kShort;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
}

TEST_F(HttpClient, DoesNotWaitForAServerThatTricklesItsBody) {
  const RawServer server([](const RawServer::Client& client) {
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (client.send("x")) std::this_thread::sleep_for(milliseconds(1));
  });
  options_.progress_timeout = kShort;
  options_.progress_bytes = 100000;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
  options_ = {};
  options_.total_timeout = kShort;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
}

TEST_F(HttpClient, DoesNotWaitForAServerThatTricklesItsHeaders) {
  const RawServer server([](const RawServer::Client& client) {
    client.send("HTTP/1.1 200 OK\r\nX: ");
    while (client.send("x")) std::this_thread::sleep_for(milliseconds(1));
  });
  options_.first_byte_timeout = kShort;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
}

TEST_F(HttpClient, RefusesBodiesThatAreTooLarge) {
  options_.max_bytes = 10;
  const RawServer honest(http_answer("12345678901"));
  EXPECT_EQ(failure(honest.url()).code, ErrorCode::exhausted);
  EXPECT_EQ(body_, "");
  const RawServer sly("HTTP/1.1 200 OK\r\n\r\n12345678901");
  EXPECT_EQ(failure(sly.url()).code, ErrorCode::exhausted);
  const RawServer fitting(http_answer("1234567890"));
  EXPECT_TRUE(get(fitting.url()).ok());
}

TEST_F(HttpClient, RefusesAnswersThatEndTooEarly) {
  for (const char* text : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12345678",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    const RawServer server{std::string(text)};
    EXPECT_EQ(failure(server.url()).code, ErrorCode::corrupt) << text;
  }
}

TEST_F(HttpClient, RefusesWhatIsNotHttp) {
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string("\0\1\2\3\r\n\r\n", 8),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x') + "\r\n\r\n"}) {
    const RawServer server(text);
    EXPECT_EQ(failure(server.url()).code, ErrorCode::corrupt) << text.substr(0, 60);
  }
}

TEST_F(HttpClient, RefusesEncodingsThatItDidNotAskFor) {
  const RawServer server("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx");
  EXPECT_THAT(failure(server.url()).message, HasSubstr("gzip"));
}

TEST_F(HttpClient, FollowsAFewRedirections) {
  const RawServer server([](const RawServer::Client& client) {
    client.send(client.request().starts_with("GET /there ")
                    ? http_answer("found")
                    : "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n");
  });
  ASSERT_TRUE(get(server.url("/here")).ok());
  EXPECT_EQ(body_, "found");
}

TEST_F(HttpClient, DoesNotGoRoundInCircles) {
  const RawServer server("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(failure(server.url()).message, HasSubstr("redirections"));
  EXPECT_EQ(server.requests().size(), 4U);
  const RawServer elsewhere("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n");
  EXPECT_FALSE(get(elsewhere.url()).ok());
  const RawServer nowhere("HTTP/1.1 302 Found\r\n\r\n");
  EXPECT_FALSE(get(nowhere.url()).ok());
}

TEST_F(HttpClient, SaysThatNobodyListens) {
  RawServer server("");
  server.close();
  EXPECT_THAT(failure(server.url()).message, HasSubstr("Connection refused"));
}

TEST_F(HttpClient, DoesNotWaitForAHostThatDoesNotTakeConnections) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, size), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> queue;  // whoever is not accepted waits here, and then the kernel drops the next ones
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(queue.back().get(), generic, size);
  }
  options_.connect_timeout = kShort;
  options_.first_byte_timeout = kShort;
  EXPECT_THAT(failure("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))).message,
              HasSubstr("no answer in time"));
}

TEST_F(HttpClient, GivesUpWhenToldTo) {
  std::promise<void> asked;
  std::once_flag first;  // the second request may reach the server or not
  const RawServer server([&](const RawServer::Client& client) {
    std::call_once(first, [&] { asked.set_value(); });
    client.wait_until_gone();
  });
  options_.first_byte_timeout = options_.total_timeout = std::chrono::hours(1);
  std::stop_source stop;
  options_.stop = stop.get_token();
  auto result = std::async(std::launch::async, [&] { return failure(server.url()).message; });
  asked.get_future().wait();
  stop.request_stop();
  EXPECT_THAT(result.get(), HasSubstr("given up"));
  EXPECT_THAT(failure(server.url()).message, testing::Not(HasSubstr("did not fail")));
}

TEST_F(HttpClient, EndsWhenTheSinkCannotTakeMore) {
  const RawServer server(http_answer("content"));
  const auto answer = http_get(server.url(), options_, [](std::span<const std::byte>) -> Result<void> {
    return make_error(ErrorCode::exhausted, "disk full");
  });
  EXPECT_EQ(answer.error().code, ErrorCode::exhausted);
  EXPECT_THAT(answer.error().message, HasSubstr("disk full"));
}

}  // namespace
}  // namespace ddprof
