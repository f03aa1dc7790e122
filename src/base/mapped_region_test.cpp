#include "base/mapped_region.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

TEST(TruncatedFiles, ReadAsZerosBehindTheirEnd) {
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGBUS, nullptr, &before), 0);
  survive_truncated_files();
  UniqueFd fd(::memfd_create("shrinking", MFD_CLOEXEC));
  const std::string content(64 * 1024, 'x');
  ASSERT_EQ(::write(fd.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  auto region = MappedRegion::map_file(fd.get());
  ASSERT_TRUE(region.ok());
  ASSERT_EQ(::ftruncate(fd.get(), 100), 0);
  const std::uint64_t missing_before = missing_file_pages();
  const auto bytes = region->bytes();
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{'x'}), 100);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}), std::ssize(content) - 100);
  EXPECT_GT(missing_file_pages(), missing_before);
  ASSERT_EQ(::sigaction(SIGBUS, &before, nullptr), 0);
}

}  // namespace

}  // namespace ddprof
