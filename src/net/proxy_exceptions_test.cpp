#include "net/proxy.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

bool has(const char* list, const char* host, std::uint16_t port = 443) {
  return is_excepted(list, host, port);
}

TEST(ProxyExceptions, AreHostsAndAllBelowThem) {
  for (const char* entry : {"example.org", ".example.org", "*.example.org", "EXAMPLE.org."}) {
    EXPECT_TRUE(has(entry, "example.org")) << entry;
    EXPECT_TRUE(has(entry, "a.b.Example.ORG")) << entry;
    EXPECT_FALSE(has(entry, "badexample.org")) << entry;
    EXPECT_FALSE(has(entry, "example.org.evil")) << entry;
    EXPECT_FALSE(has(entry, "org")) << entry;
  }
}

TEST(ProxyExceptions, AreAListWithCommasAndBlanks) {
  EXPECT_TRUE(has("a, b ,,c", "a"));
  EXPECT_TRUE(has("a, b ,,c", "b"));
  EXPECT_TRUE(has("a b\tc", "c"));
  EXPECT_FALSE(has("a, b", "c"));
  EXPECT_FALSE(has("", "c"));
  EXPECT_FALSE(has(", .,", "c"));
  EXPECT_TRUE(has("a,*", "anything"));
}

TEST(ProxyExceptions, MayHaveAPort) {
  EXPECT_TRUE(has("host:8080", "host", 8080));
  EXPECT_FALSE(has("host:8080", "host", 443));
  EXPECT_FALSE(has("host:x", "host"));
  EXPECT_TRUE(has("[fd00::1]:8080", "fd00::1", 8080));
  EXPECT_FALSE(has("[fd00::1]:8080", "fd00::1", 80));
  EXPECT_TRUE(has("10.0.0.1:80", "10.0.0.1", 80));
}

TEST(ProxyExceptions, AreAddressesInAnyWriting) {
  EXPECT_TRUE(has("fd00:0:0::1", "fd00::1"));
  EXPECT_TRUE(has("[fd00::1]", "fd00::1"));
  EXPECT_TRUE(has("10.0.0.1", "10.0.0.1"));
  EXPECT_FALSE(has("0.0.1", "10.0.0.1")) << "an address is below no name";
  EXPECT_FALSE(has("10.0.0.1", "a.10.0.0.1.example"));
}

TEST(ProxyExceptions, AreNetworks) {
  EXPECT_TRUE(has("10.0.0.0/8", "10.255.1.2"));
  EXPECT_FALSE(has("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(has("192.168.128.0/17", "192.168.255.1"));
  EXPECT_FALSE(has("192.168.128.0/17", "192.168.127.255"));
  EXPECT_TRUE(has("0.0.0.0/0", "8.8.8.8"));
  EXPECT_FALSE(has("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(has("fd00::/8", "fdff::1"));
  EXPECT_TRUE(has("[fd00::]/8", "fdff::1"));
  EXPECT_FALSE(has("10.0.0.0/33", "10.0.0.0"));
  EXPECT_FALSE(has("10.0.0.0/-1", "10.0.0.0"));
  EXPECT_FALSE(has("10.0.0.0/", "10.0.0.0"));
  EXPECT_FALSE(has("10.0.0.0/8", "ten.example"));
}

}  // namespace
}  // namespace ddprof
