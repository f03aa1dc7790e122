#include "export/addresses.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(StatsdAddress, ReadsEveryForm) {
  EXPECT_EQ(StatsdAddress::parse("unix:///var/run/datadog/dsd.socket")->path, "/var/run/datadog/dsd.socket");
  EXPECT_EQ(StatsdAddress::parse("/run/dsd.socket")->path, "/run/dsd.socket");
  const auto udp = StatsdAddress::parse("udp://agent.example:9125");
  ASSERT_TRUE(udp);
  EXPECT_FALSE(udp->is_unix());
  EXPECT_EQ(udp->host, "agent.example");
  EXPECT_EQ(udp->port, 9125);
  EXPECT_EQ(StatsdAddress::parse("localhost:8126")->port, 8126);
  const auto numeric = StatsdAddress::parse("[::1]:8127");
  ASSERT_TRUE(numeric);
  EXPECT_EQ(numeric->host, "::1");
  EXPECT_EQ(numeric->port, 8127);
}

TEST(StatsdAddress, TakesTheUsualPortOnlyWhereTheSchemeSaysThatItIsAHost) {
  EXPECT_EQ(StatsdAddress::parse("udp://agent")->port, 8125);
  EXPECT_EQ(StatsdAddress::parse("udp://[::1]")->port, 8125);
  EXPECT_FALSE(StatsdAddress::parse("dsd.socket"));
}

TEST(StatsdAddress, SaysWhatItCannotRead) {
  const std::string too_long = "/" + std::string(108, 'x');
  for (std::string_view text : {"", "udp://", "unix://", "unix://relative", "host:", "host:0", "host:65536",
                                "host:80x", ":8125", "[::1:8125", "[::1]8125", "::1:8125", "http://host:1",
                                "user@host:1", "a b:1", "a\x1b[2J:1", too_long.c_str()}) {
    const auto address = StatsdAddress::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(address.error().hint.empty());
    EXPECT_EQ(address.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(StatsdAddress, IsReadBackFromItsText) {
  for (std::string_view text : {"unix:///a b/c", "udp://agent:1", "udp://[fe80::1%eth0]:65535"}) {
    const auto address = StatsdAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
}

}  // namespace
}  // namespace ddprof
