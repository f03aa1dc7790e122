#include "base/file_name.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(SafeFileName, LeavesUsualNamesAlone) {
  for (const char* name : {"server", "my_app", "python3.11", "nginx-debug", "A-1.b"})
    EXPECT_EQ(safe_file_name(name), name);
}

TEST(SafeFileName, IsNeverAPathNorHiddenNorAnOption) {
  EXPECT_EQ(safe_file_name("../../../tmp/x"), "_._.._.._tmp_x");
  EXPECT_EQ(safe_file_name("/etc/passwd"), "_etc_passwd");
  EXPECT_EQ(safe_file_name(".."), "_.");
  EXPECT_EQ(safe_file_name("."), "_");
  EXPECT_EQ(safe_file_name(""), "_");
  EXPECT_EQ(safe_file_name("-rf"), "_rf");
}

TEST(SafeFileName, HasNothingThatNeedsQuotes) {
  EXPECT_EQ(safe_file_name("kworker/0:1 \"x\"\n\x1b[31m$(id)"), "kworker_0_1_x_31m_id_");
  EXPECT_EQ(safe_file_name("gr\xc3\xb6\xc3\x9f"
                           "e\xff"),
            "gr_e_");
  EXPECT_EQ(safe_file_name(std::string_view("a\0b", 3)), "a_b");
}

TEST(SafeFileName, FitsBesideWhatIsAddedToIt) {
  EXPECT_EQ(safe_file_name(std::string(300, 'x')).size(), 60U);
}

TEST(SafeFileName, NamesTheSpoolsOfEarlierVersions) {
  EXPECT_EQ(safe_file_name("http://localhost:8126"), "http_localhost_8126");
}

}  // namespace
}  // namespace ddprof
