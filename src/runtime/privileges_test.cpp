#include "runtime/privileges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "runtime/in_child_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

constexpr const char* kNoCapability =
    "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n";
constexpr const char* kNobody = "65534";

std::string outcome(const Result<void>& result) {
  return result ? "done\n" : result.error().message + "\n" + result.error().hint + "\n";
}

// What came of the steps, in their order, then those lines of /proc/self/status.
std::string after(std::initializer_list<std::function<Result<void>()>> steps,
                  std::initializer_list<const char*> lines) {
  std::string text;
  for (const auto& step : steps) text += outcome(step());
  for (const char* line : lines) text += status_lines(line);
  return text;
}

auto switching_to(const char* user) {
  return [user] { return switch_user(user); };
}

class Privileges : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has privileges to give up";
  }
};

TEST_F(Privileges, DropsTheCapabilitiesOfAllFiveSets) {
  EXPECT_EQ(in_child([] { return after({drop_capabilities}, {"Cap"}); }),
            std::string("done\n") + kNoCapability);
}

TEST_F(Privileges, StayDroppedWhenDroppedAgain) {
  EXPECT_EQ(in_child([] { return after({drop_capabilities, drop_capabilities}, {}); }), "done\ndone\n");
}

auto limiting_to(bool drops_capabilities, const char* user) {
  return [=] { return limit_privileges({drops_capabilities, user}); };
}

auto asking_for(bool drops_capabilities, const char* user) {
  return [=] { return check_can_limit({drops_capabilities, user}); };
}

TEST_F(Privileges, SwitchAllIdsAndGroupsByNameNumberOrBoth) {
  for (const char* user : {"nobody", kNobody, "65534:65534"}) {
    EXPECT_EQ(in_child([&] {
                return after({switching_to(user)}, {"Uid", "Gid", "Groups"});
              }),
              "done\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t65534 \n")
        << user;
  }
}

TEST_F(Privileges, SwitchToNumbersWithoutAnAccount) {
  EXPECT_EQ(in_child([] { return after({switching_to("54321:54322")}, {"Gid"}); }),
            "done\nGid:\t54322\t54322\t54322\t54322\n");
}

TEST_F(Privileges, AreLimitedInTheOrderThatWorks) {
  EXPECT_EQ(in_child([] {
              return after({limiting_to(true, kNobody)}, {"Uid", "Cap"});
            }),
            std::string("done\nUid:\t65534\t65534\t65534\t65534\n") + kNoCapability);
}

TEST_F(Privileges, ThatAreMissingAreNamed) {
  EXPECT_THAT(in_child([] {
                return after({switching_to(kNobody), drop_capabilities}, {});
              }),
              HasSubstr("done\ndrop capabilities: bounding set: Operation not permitted\nrun as root"));
  EXPECT_THAT(in_child([] {
                return after({switching_to(kNobody), switching_to("0")}, {});
              }),
              HasSubstr("done\nswitch to user 0: set groups: Operation not permitted\nrun as root"));
}

TEST_F(Privileges, ThatAreMissingAreFoundBeforeAnythingIsStarted) {
  EXPECT_THAT(in_child([] {
                return after({switching_to(kNobody), asking_for(true, "")}, {});
              }),
              HasSubstr("bounding set: Operation not permitted"));
  EXPECT_THAT(in_child([] {
                return after({switching_to(kNobody), asking_for(false, "root")}, {});
              }),
              HasSubstr("switch to user root: set user: Operation not permitted"));
  EXPECT_EQ(in_child([] { return after({asking_for(true, kNobody)}, {"Uid"}); }), "done\nUid:\t0\t0\t0\t0\n");
}

TEST(User, WhoIsUnknownIsSaidToBe) {
  for (const char* user : {"no-such-user-here", "54321", "1:", ":1", "1:2:3", "-1", "4294967295:0", ""}) {
    auto switched = switch_user(user);
    ASSERT_FALSE(switched) << user;
    EXPECT_EQ(switched.error().message, fmt::format("switch to user {}: no such user", user));
  }
}

TEST(User, WhoOneIsAlreadyNeedsNoPrivilege) {
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && !switch_user(kNobody)) return std::string("not switched");
              return outcome(switch_user(fmt::format("{}:{}", ::getuid(), ::getgid())));
            }),
            "done\n");
}

TEST(NewPrivileges, AreForbiddenForGood) {
  EXPECT_EQ(in_child([] { return after({forbid_new_privileges}, {"NoNewPrivs"}); }),
            "done\nNoNewPrivs:\t1\n");
}

TEST(BorrowedIdentity, IsNotWhatAnOrdinaryProgramHas) { EXPECT_TRUE(refuse_borrowed_identity()); }

}  // namespace
}  // namespace ddprof
