#include "net/http_post.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/scratch_fixture.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kMoment{100};
constexpr std::string_view kAccepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

class Post : public testing::Test {
 protected:
  Result<HttpPostAnswer> post(const std::string& url) {
    post_.url = url;
    post_.body = std::as_bytes(std::span(body_));
    return http_post(post_, options_);
  }
  Error failure(const std::string& url) {
    auto answer = post(url);
    return answer ? Error{ErrorCode::failed, "it did not fail"} : std::move(answer).error();
  }

  HttpPost post_{.url = {}, .socket = {}, .content_type = "text/plain", .headers = {}, .body = {}};
  HttpOptions options_;
  std::string body_ = "the body";
};

TEST_F(Post, SendsTheBodyWithItsHeaders) {
  std::promise<std::string> got;
  const RawServer server([&](const RawServer::Client& client) {
    got.set_value(client.receive_body());
    client.send(kAccepted);
  });
  body_ = std::string(3'000'000, 'b') + '\0' + "end";
  post_.headers = {{"DD-EVP-ORIGIN", "ddprof"}};
  const auto answer = post(server.url("/input?x"));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 202U);
  EXPECT_EQ(got.get_future().get(), body_);
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, testing::StartsWith("POST /input?x HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: text/plain\r\nDD-EVP-ORIGIN: ddprof\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(Post, KeepsTheBodyOfAGoodAnswerWhereItIsWanted) {
  const RawServer server([&](const RawServer::Client& client) {
    client.receive_body();
    client.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
  });
  EXPECT_EQ(post(server.url("/")).value().body, "");
  post_.wants_body = true;
  EXPECT_EQ(post(server.url("/")).value().body, "body");
}

TEST_F(Post, KeepsTheQueryOutOfMessages) {
  std::string url;
  {
    const RawServer gone([](const RawServer::Client&) {});
    url = gone.url("/input?token=secret");
  }
  EXPECT_THAT(failure(url).message, testing::AllOf(HasSubstr("/input: "), testing::Not(HasSubstr("secret"))));
}

TEST_F(Post, SendsToAUnixSocket) {
  const ScratchFolder folder;
  post_.socket = folder.path("server.sock");
  EXPECT_THAT(failure("http://localhost/input").message,
              HasSubstr("post to unix://" + post_.socket + ": connect: No such file"));
  const RawServer server(
      [](const RawServer::Client& client) {
        if (client.receive_body() == "the body") client.send(kAccepted);
      },
      post_.socket);
  const auto answer = post("http://localhost/input");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 202U);
  EXPECT_THAT(server.requests().at(0), testing::StartsWith("POST /input HTTP/1.1\r\nHost: localhost\r\n"));
  post_.socket = "/" + std::string(200, 'x');
  EXPECT_THAT(failure("http://localhost/").message, HasSubstr("not the path of a socket"));
}

TEST_F(Post, KeepsWhatAServerSaysWhenItRefuses) {
  const RawServer server([](const RawServer::Client& client) {
    client.receive_body();
    client.send("HTTP/1.1 429 Slow Down\r\nRetry-After: 17\r\nContent-Length: 5\r\n\r\nlater");
  });
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 429U);
  EXPECT_EQ(answer->retry_after, "17");
  EXPECT_EQ(answer->body, "later");
}

TEST_F(Post, KeepsOnlyTheBeginningOfALongAnswer) {
  const RawServer server([](const RawServer::Client& client) {
    client.receive_body();
    client.send("HTTP/1.1 500 Oh\r\n\r\n");
    while (client.send(std::string(1000, 'x'))) {
    }
  });
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->body, std::string(kMaxAnswerBytes, 'x'));
}

TEST_F(Post, TakesAnAnswerThatBreaksOffInItsBody) {
  const RawServer server([](const RawServer::Client& client) {
    client.receive_body();
    client.send("HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nhalf of");
  });
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 503U);
  EXPECT_EQ(answer->body, "half of");
}

TEST_F(Post, ReadsTheReasonOfOneWhoDoesNotTakeTheWholeBody) {
  const RawServer server("HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\n\r\nten MiB!");
  body_ = std::string(16'000'000, 'b');
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 413U);
}

TEST_F(Post, PassesOverAnswersThatOnlySayGoOn) {
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
  const RawServer server([&](const RawServer::Client& client) {
    client.receive_body();
    client.send(go_on + std::string(kAccepted));
  });
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 202U);
  // It reads the body first: closing with bytes unread resets the connection, and the answer may be lost with
  // it.
  const RawServer only([&](const RawServer::Client& client) {
    client.receive_body();
    client.send(go_on);
  });
  EXPECT_EQ(failure(only.url()).code, ErrorCode::corrupt);
  const RawServer endless([&](const RawServer::Client& client) {
    while (client.send(go_on)) {
    }
  });
  EXPECT_THAT(failure(endless.url()).message, HasSubstr("never comes to its end"));
}

TEST_F(Post, DoesNotFollowRedirections) {
  const RawServer server([](const RawServer::Client& client) {
    client.receive_body();
    client.send("HTTP/1.1 307 There\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n");
  });
  const auto answer = post(server.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 307U);
  EXPECT_EQ(answer->location, "http://elsewhere/");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Post, DoesNotWaitForAServerThatNeverReads) {
  std::promise<void> over;
  const RawServer server([&](const RawServer::Client&) { over.get_future().wait(); });
  body_ = std::string(64'000'000, 'b');
  options_.progress_timeout = options_.first_byte_timeout = kMoment;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
  over.set_value();
}

TEST_F(Post, DoesNotWaitForAServerThatNeverAnswers) {
  const RawServer server([](const RawServer::Client& client) { client.wait_until_gone(); });
  options_.first_byte_timeout = kMoment;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
  options_ = {};
  options_.total_timeout = kMoment;
  EXPECT_THAT(failure(server.url()).message, HasSubstr("no answer in time"));
}

TEST_F(Post, DoesNotWaitForAServerThatDribbles) {
  const auto dribble = [](std::string_view start) {
    return [start](const RawServer::Client& client) {
      client.receive_body();
      client.send(start);
      while (client.send("x")) std::this_thread::sleep_for(milliseconds(1));
    };
  };
  options_.total_timeout = kMoment;
  const RawServer header(dribble("HTTP/1.1 200 OK\r\nX: "));
  EXPECT_THAT(failure(header.url()).message, HasSubstr("no answer in time"));
  const RawServer body(dribble("HTTP/1.1 500 Oh\r\nContent-Length: 1000000\r\n\r\n"));
  const auto answer = post(body.url());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 500U);
}

TEST_F(Post, RefusesWhatIsNoAnswer) {
  for (const char* text : {"", "HTTP/1.1 200", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const RawServer server([text](const RawServer::Client& client) {
      client.receive_body();
      client.send(text);
    });
    EXPECT_EQ(failure(server.url()).code, ErrorCode::corrupt) << text;
  }
}

TEST_F(Post, LetsNoValueBecomeAHeader) {
  post_.headers = {{"X", "a\r\nDD-API-KEY: stolen"}};
  EXPECT_EQ(failure("http://127.0.0.1:1/").code, ErrorCode::invalid_argument);
  post_.headers.clear();
  EXPECT_THAT(failure("http://user:secret@host/").message, testing::Not(HasSubstr("secret")));
}

TEST_F(Post, GivesUpWhenToldTo) {
  std::promise<void> asked;
  const RawServer server([&](const RawServer::Client& client) {
    asked.set_value();
    client.wait_until_gone();
  });
  options_.first_byte_timeout = options_.total_timeout = std::chrono::hours(1);
  std::stop_source stop;
  options_.stop = stop.get_token();
  auto result = std::async(std::launch::async, [&] { return failure(server.url()).message; });
  asked.get_future().wait();
  stop.request_stop();
  EXPECT_THAT(result.get(), HasSubstr("given up"));
}

}  // namespace
}  // namespace ddprof
