#include "base/mounts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ddprof {
namespace {

const std::string kLocalMounts =
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "23 22 0:21 / /proc rw,nosuid - proc proc rw\n"
    "24 22 0:22 / /tmp rw - tmpfs tmpfs rw\n";

TEST(Mounts, FindsTheMountOfAPath) {
  const std::string mounts =
      kLocalMounts + "30 22 0:40 / /home/a rw - fuse.sshfs there: rw,user_id=1000,group_id=1000\n";
  EXPECT_FALSE(find_mount("/etc/passwd", mounts).has_value()) << "the root of all";
  EXPECT_FALSE(find_mount("/home/ab", mounts).has_value());
  const auto found = find_mount("/home/a/file", mounts);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->point, "/home/a");
  EXPECT_EQ(found->type, "fuse.sshfs");
  EXPECT_EQ(found->server, 1000U);
  EXPECT_FALSE(find_mount("/tmp/x", mounts)->server.has_value());
  EXPECT_EQ(find_mount_of_device(found->device, mounts)->point, "/home/a");
}

TEST(Mounts, KnowWhichMayHang) {
  EXPECT_FALSE(may_hang(kLocalMounts));
  EXPECT_TRUE(may_hang(kLocalMounts + "31 22 0:41 / /mnt rw - nfs4 server:/x rw\n"));
  EXPECT_TRUE(may_hang(kLocalMounts + "31 22 0:41 / /mnt rw - fuse.sshfs x rw,user_id=0\n"));
  EXPECT_TRUE(may_hang(kLocalMounts + "31 22 0:41 / /net rw - autofs x rw\n"));
  EXPECT_TRUE(may_hang(kLocalMounts + "31 22 0:41 / /mnt rw\n")) << "a type that is not told";
  EXPECT_TRUE(may_hang("")) << "nothing is known";
}

}  // namespace
}  // namespace ddprof
