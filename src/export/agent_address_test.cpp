#include "export/addresses.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

std::string address_of(const std::string& url, const std::string& host = "localhost") {
  auto address = AgentAddress::parse(url, host, 8126);
  return address ? address->text() : "error";
}

TEST(AgentAddress, TakesEveryFormOfTheOption) {
  EXPECT_EQ(address_of(""), "http://localhost:8126");
  EXPECT_EQ(address_of("", "10.0.0.7"), "http://10.0.0.7:8126");
  EXPECT_EQ(address_of("", "::1"), "http://[::1]:8126");
  EXPECT_EQ(address_of("agent:8200"), "http://agent:8200");
  EXPECT_EQ(address_of("https://agent/"), "https://agent");
  EXPECT_EQ(address_of("http://gateway/dd/"), "http://gateway/dd");
  EXPECT_EQ(address_of("unix:///run/agent.sock"), "unix:///run/agent.sock");
  EXPECT_EQ(address_of("/run/agent.sock"), "unix:///run/agent.sock");
  EXPECT_EQ(address_of("ftp://agent"), "error");
}

}  // namespace
}  // namespace ddprof
