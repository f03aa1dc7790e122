#include "export/statsd.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <regex>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The other end: a bound datagram socket.
class Receiver {
 public:
  static Receiver at_path(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    return Receiver(AF_UNIX, &name, sizeof name);
  }
  static Receiver at_loopback() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return Receiver(AF_INET, &name, sizeof name);
  }

  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &size);
    return ntohs(name.sin_port);
  }
  // The next datagram; none when there is none after `patience_ms`.
  [[nodiscard]] std::optional<std::string> receive(int patience_ms = 5000) const {
    pollfd wanted{fd_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, patience_ms) != 1) return std::nullopt;
    std::array<char, 65536> bytes;
    const ssize_t size = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (size < 0) return std::nullopt;
    return std::string(bytes.data(), static_cast<std::size_t>(size));
  }
  [[nodiscard]] std::vector<std::string> drain() const {
    std::vector<std::string> datagrams;
    while (auto datagram = receive(0)) datagrams.push_back(*datagram);
    return datagrams;
  }

 private:
  Receiver(int family, const void* name, socklen_t size)
      : fd_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::bind(fd_.get(), static_cast<const sockaddr*>(name), size), 0) << std::strerror(errno);
  }
  UniqueFd fd_;
};

std::vector<std::string> lines_of(const std::vector<std::string>& datagrams) {
  std::vector<std::string> lines;
  for (const std::string& datagram : datagrams) {
    std::size_t start = 0;
    for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
      end = datagram.find('\n', start);
      lines.push_back(datagram.substr(start, end - start));
    }
  }
  return lines;
}

class StatsdTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string socket() const { return scratch_.path("dsd.socket"); }
  ScratchFolder scratch_;
};

TEST_F(StatsdTest, GathersLinesInOneDatagramOfAUnixSocket) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open("unix://" + socket(), {"service:shop", "env:prod"});
  ASSERT_TRUE(client);
  client->gauge("a.rate", 0.25);
  client->gauge("a.size", 25165824);
  client->count("a.restarts", 3);
  EXPECT_TRUE(receiver.drain().empty()) << "sent before it was flushed";
  client->flush();
  EXPECT_THAT(receiver.drain(), ElementsAre("a.rate:0.25|g|#service:shop,env:prod\n"
                                            "a.size:25165824|g|#service:shop,env:prod\n"
                                            "a.restarts:3|c|#service:shop,env:prod"));
  client->flush();
  EXPECT_TRUE(receiver.drain().empty()) << "an empty datagram";
  EXPECT_EQ(client->dropped(), 0U);
  EXPECT_FALSE(client->take_error());
}

TEST_F(StatsdTest, SendsOverUdpByNumberAndByName) {
  const Receiver receiver = Receiver::at_loopback();
  auto by_number = StatsdClient::open(fmt::format("udp://127.0.0.1:{}", receiver.port()));
  ASSERT_TRUE(by_number);
  by_number->count("x", 1);
  by_number->flush();
  EXPECT_EQ(receiver.receive(), "x:1|c");

  auto by_name = StatsdClient::open(fmt::format("localhost:{}", receiver.port()));
  ASSERT_TRUE(by_name);
  std::optional<std::string> received;
  for (int tries = 0; tries < 500 && !received; ++tries) {  // until the name has been looked up
    by_name->count("y", 2);
    by_name->flush();
    received = receiver.receive(10);
  }
  EXPECT_EQ(received, "y:2|c");
}

TEST_F(StatsdTest, FillsDatagramsUpToTheirLimitAndNeverSplitsALine) {
  const Receiver unix_receiver = Receiver::at_path(socket());
  const Receiver udp_receiver = Receiver::at_loopback();
  struct Case {
    const Receiver& receiver;
    std::string where;
    std::size_t limit;
  };
  for (const Case& each : {Case{unix_receiver, socket(), 8192},
                           Case{udp_receiver, fmt::format("127.0.0.1:{}", udp_receiver.port()), 1432}}) {
    auto client = StatsdClient::open(each.where, {"service:shop"});
    ASSERT_TRUE(client);
    std::vector<std::string> expected;
    for (int i = 0; i < 300; ++i) {
      client->count("a.metric.with.a.name", i);
      expected.push_back(fmt::format("a.metric.with.a.name:{}|c|#service:shop", i));
    }
    client->flush();
    const auto datagrams = each.receiver.drain();
    EXPECT_EQ(lines_of(datagrams), expected);
    ASSERT_GT(datagrams.size(), 1U);
    for (const std::string& datagram : datagrams) EXPECT_LE(datagram.size(), each.limit);
    EXPECT_GT(datagrams.front().size(), each.limit - 64) << "a datagram that could have held more";
  }
}

TEST_F(StatsdTest, TagsCannotBreakALine) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open(
      socket(), {"a:1,b:2", "", "x|@0.1", "y\nfake:1|c", "name:größe", std::string(300, 'z')});
  ASSERT_TRUE(client);
  client->count("n", 1);
  client->flush();
  const std::string line = receiver.receive().value_or("");
  EXPECT_EQ(line, "n:1|c|#a:1_b:2,x_@0.1,y_fake:1_c,name:größe," + std::string(200, 'z'));
}

TEST_F(StatsdTest, CutsALongTagBetweenCharacters) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open(socket(), {std::string(199, 'z') + "ö"});
  ASSERT_TRUE(client);
  client->count("n", 1);
  client->flush();
  EXPECT_EQ(receiver.receive(), "n:1|c|#" + std::string(199, 'z'));
}

TEST_F(StatsdTest, LeavesOutWhatIsNotANumber) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open(socket());
  ASSERT_TRUE(client);
  client->gauge("nan", std::nan(""));
  client->gauge("infinite", std::numeric_limits<double>::infinity());
  client->flush();
  EXPECT_TRUE(receiver.drain().empty());
}

TEST_F(StatsdTest, AnAbsentServerIsSaidOnceAndFoundWhenItComes) {
  auto client = StatsdClient::open(socket());
  ASSERT_TRUE(client);
  for (int i = 0; i < 3; ++i) {
    client->count("early", 1);
    client->flush();
  }
  const auto error = client->take_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::not_found);
  EXPECT_THAT(error->message, HasSubstr(socket()));
  EXPECT_FALSE(client->take_error());
  EXPECT_EQ(client->dropped(), 3U);

  const Receiver receiver = Receiver::at_path(socket());
  client->count("late", 1);
  client->flush();
  EXPECT_EQ(receiver.receive(), "late:1|c");
}

TEST_F(StatsdTest, FollowsAServerThatWasStartedAnew) {
  auto client = StatsdClient::open(socket());
  ASSERT_TRUE(client);
  for (int i = 0; i < 2; ++i) {
    const Receiver receiver = Receiver::at_path(socket());
    client->count("again", i);
    client->flush();
    EXPECT_EQ(receiver.receive(), fmt::format("again:{}|c", i));
    std::filesystem::remove(socket());
  }
  EXPECT_EQ(client->dropped(), 0U);
  EXPECT_FALSE(client->take_error());
}

TEST_F(StatsdTest, AServerThatDoesNotReadNeverHoldsItUp) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open(socket());
  ASSERT_TRUE(client);
  // More than any queue between the two takes; a call that waits would never return.
  for (int i = 0; i < 2000; ++i) {
    client->count("n", i);
    client->flush();
  }
  EXPECT_GT(client->dropped(), 0U);
  EXPECT_EQ(lines_of(receiver.drain()).size() + client->dropped(), 2000U) << "nothing is lost in silence";
  EXPECT_THAT(client->take_error()->message, HasSubstr("send to unix://"));
}

TEST_F(StatsdTest, ADeadUdpPortIsNoticed) {
  std::uint16_t port = 0;
  {
    const Receiver receiver = Receiver::at_loopback();
    port = receiver.port();
  }
  auto client = StatsdClient::open(fmt::format("127.0.0.1:{}", port));
  ASSERT_TRUE(client);
  for (int i = 0; i < 3; ++i) {  // the answer to one datagram is seen by the next
    client->count("n", i);
    client->flush();
  }
  EXPECT_GT(client->dropped(), 0U);
  EXPECT_TRUE(client->take_error());
}

TEST_F(StatsdTest, TooManyTagsAreSaidAndSendNothing) {
  const Receiver receiver = Receiver::at_path(socket());
  auto client = StatsdClient::open(socket(), std::vector<std::string>(100, std::string(200, 'x')));
  ASSERT_TRUE(client);
  client->count("n", 1);
  client->flush();
  EXPECT_TRUE(receiver.drain().empty());
  EXPECT_EQ(client->dropped(), 1U);
  EXPECT_THAT(client->take_error()->message, HasSubstr("too many tags"));
}

TEST(Statsd, RefusesAnAddressThatMakesNoSense) { EXPECT_FALSE(StatsdClient::open("dsd.socket")); }

}  // namespace
}  // namespace ddprof
