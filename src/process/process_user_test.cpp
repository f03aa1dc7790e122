#include "process/process_user.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ddprof {
namespace {

TEST(ProcessUser, IsTheOneWhoOpensFiles) {
  const auto user =
      parse_process_user("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nNSpid:\t77\t12\n");
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->rights, (UserRights{4, 8, {9, 10}}));
  EXPECT_EQ(user->inner_pid, 12);
  EXPECT_FALSE(parse_process_user("Name:\tx\nUid:\t1\n").has_value());
}

TEST(ProcessUser, IsFoundForALivingProcess) {
  const Pid self{static_cast<Pid>(::getpid())};
  EXPECT_EQ(read_process_user(self)->rights.user, ::geteuid());
  EXPECT_EQ(find_user_of(self), ::geteuid());
  EXPECT_FALSE(find_user_of(Pid{0x7ffffff0}).has_value());
}

TEST(ProcessUser, NamesPathsWithTheRightsOfWhoWroteTheFile) {
  const UserRights alice{1001, 1001, {50}};
  const UserRights root{0, 0, {}};
  EXPECT_EQ(rights_of_writer(0, alice), std::nullopt);
  EXPECT_EQ(rights_of_writer(1001, alice), alice);
  // Root, or another user, runs what she wrote; or nobody knows who ran it.
  EXPECT_EQ(rights_of_writer(1001, root), rights_of_user(1001));
  EXPECT_EQ(rights_of_writer(1001, std::nullopt), rights_of_user(1001));
  // Who wrote it is not known: nobody's rights, but those of a user who runs it.
  EXPECT_EQ(rights_of_writer(std::nullopt, alice), alice);
  EXPECT_EQ(rights_of_writer(std::nullopt, root), rights_of_user(kNoGroup));
}

}  // namespace
}  // namespace ddprof
