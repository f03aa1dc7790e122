#include "export/local_agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of a machine with an agent, a client of it, and others at other ports and addresses.
constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1FBE 00000000:0000 0A 00000000:00000000 00:00000000 00000000   107        0 31337 1 0 "
    "100\n"
    "   1: 0100007F:1FBE 0100007F:B2A4 01 00000000:00000000 00:00000000 00000000    12        0 31338 1 0 "
    "100\n"
    "   2: 00000000:1FBF 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31339 1 0 "
    "100\n"
    "   3: 0A00000A:1FBE 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 31340 1 0 "
    "100\n"
    "   4: 00000000000000000000000000000000:1FBE 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000 61001        0 31341 1 0 100\n"
    "not a line\n   5: 0100007F:1FBE";

TEST(AgentOwner, ListenersAreFoundByTheirPortAndAddress) {
  EXPECT_THAT(listeners_in(kTable, 8126), ElementsAre(107, 61001));
  EXPECT_THAT(listeners_in(kTable, 8127), ElementsAre(1000));
  EXPECT_THAT(listeners_in(kTable, 80), IsEmpty());
  EXPECT_THAT(listeners_in("", 80), IsEmpty());
}

// A listener at some port of loopback, made by this user.
std::pair<UniqueFd, std::uint16_t> listener_at(int family) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = family == AF_INET ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  socklen_t size = family == AF_INET ? sizeof four : sizeof six;
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), 1) != 0) return {};
  ::getsockname(fd.get(), address, &size);
  return {std::move(fd), ntohs(family == AF_INET ? four.sin_port : six.sin6_port)};
}

TEST(AgentOwner, RootAndThisUserAreNoStrangers) {
  const auto [listener, port] = listener_at(AF_INET);
  ASSERT_TRUE(listener.is_open());
  EXPECT_EQ(stranger_at_port(port), std::nullopt);
}

TEST(AgentOwner, OthersAre) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kStranger = 61001;
  for (const int family : {AF_INET, AF_INET6}) {
    ASSERT_EQ(::seteuid(kStranger), 0);
    const auto [listener, port] = listener_at(family);
    ASSERT_EQ(::seteuid(0), 0);
    if (!listener.is_open()) continue;  // no IPv6 here
    EXPECT_EQ(stranger_at_port(port), kStranger);
  }
}

TEST(AgentOwner, OfAUnixSocketIsWhoListens) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const ScratchFolder folder;
  const std::string path = folder.path("agent.sock");
  EXPECT_EQ(stranger_at_socket(path), std::nullopt);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(stranger_at_socket(path), std::nullopt) << "a file of ours, at which nothing listens";
  ASSERT_EQ(::seteuid(61001), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(stranger_at_socket(path), 61001U);
}

TEST(AgentProbe, TellsSocketsFromOtherFiles) {
  const ScratchFolder folder;
  folder.write("plain", "");
  const std::string path = folder.path("agent.sock");
  const AgentProbe probe = agent_probe();
  EXPECT_FALSE(probe.has_socket(path));
  EXPECT_FALSE(probe.has_socket(folder.path("plain")));
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(probe.has_socket(path));
}

TEST(AgentProbe, FindsWhatListensAtLoopback) {
  const AgentProbe probe = agent_probe(std::chrono::seconds(10));
  for (const int family : {AF_INET, AF_INET6}) {
    auto [listener, port] = listener_at(family);
    if (!listener.is_open()) continue;  // no IPv6 here
    EXPECT_TRUE(probe.has_listener(port));
    listener.reset();
    EXPECT_FALSE(probe.has_listener(port));
  }
}

TEST(AgentProbe, AsksWhoListensOnlyWhereItSeesMoreThanOthers) {
  EXPECT_EQ(has_privilege(), agent_probe().stranger_at_port != nullptr);
  if (::geteuid() == 0) {
    EXPECT_TRUE(has_privilege());
  }
}

}  // namespace
}  // namespace ddprof
