#include "session/disk_scratch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace ddprof {
namespace {

class DiskScratchTest : public testing::Test {
 protected:
  explicit DiskScratchTest(std::string folder = "/var/tmp/disk_scratch_test_" + std::to_string(::getpid()))
      : path_(std::move(folder)), scratch_(PrivateFolder::open(path_).value()) {}
  ~DiskScratchTest() override { std::filesystem::remove_all(path_); }

  std::string path_;
  DiskScratch scratch_;
};

TEST_F(DiskScratchTest, HoldsWhatIsWrittenPieceByPieceAndLeavesNoFile) {
  const std::vector<std::byte> piece(16U << 20U, std::byte{7});
  const auto region = scratch_.fill(3 * piece.size(), [&](const Scratch::Append& append) -> Result<void> {
    for (int i = 0; i < 3; ++i) TRY(append(piece));
    return {};
  });
  if (!region && region.error().code == ErrorCode::exhausted) GTEST_SKIP() << region.error().message;
  ASSERT_TRUE(region.ok()) << region.error().message;
  EXPECT_EQ(region->size(), 3 * piece.size());
  EXPECT_TRUE(std::ranges::all_of(region->bytes(), [](std::byte one) { return one == std::byte{7}; }));
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(DiskScratchTest, RefusesMoreThanTheDiskHasBeforeAnythingIsMade) {
  bool is_asked = false;
  const auto region = scratch_.fill(std::uint64_t{1} << 60U, [&](const Scratch::Append&) -> Result<void> {
    is_asked = true;
    return {};
  });
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().code, ErrorCode::exhausted);
  EXPECT_FALSE(is_asked);
}

class MemoryScratchTest : public DiskScratchTest {
 protected:
  MemoryScratchTest() : DiskScratchTest("/dev/shm/disk_scratch_test_" + std::to_string(::getpid())) {}
};

TEST_F(MemoryScratchTest, TakesNoRoomInMemory) {
  const auto region = scratch_.fill(1, [](const Scratch::Append&) { return Result<void>(); });
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().message, "unpack 1 bytes: the cache folder is in memory");
}

}  // namespace
}  // namespace ddprof
