#include "unwind/oracle/code_oracle.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

// Every how manieth address; DDPROF_CODE_ORACLE_EVERY=1 takes all.
std::size_t stride_or(std::size_t usual) {
  const char* wanted = std::getenv("DDPROF_CODE_ORACLE_EVERY");  // NOLINT: one thread
  return wanted == nullptr ? usual : std::max<std::size_t>(1, std::strtoul(wanted, nullptr, 10));
}

std::string library_path(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map));
  return map->l_name;
}

// At least 99.9 % of the rules, or this share, are those of the CFI. `answered`: the share, in percent, of
// addresses that have a rule or from which no path returns.
void expect_same_as_cfi(const char* library, std::size_t usual_stride, double answered, double same = 0.999) {
  const std::string path = library_path(library);
  if (path.empty()) GTEST_SKIP() << library << " is not installed";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto region = MappedRegion::map_file(fd.get());
  ASSERT_TRUE(region.ok()) << path;
  const auto report = compare_code_with_cfi(region->bytes(), stride_or(usual_stride));
  ASSERT_TRUE(report.ok()) << path;
  const std::string details = testing::PrintToString(report->details);
  EXPECT_GT(report->addresses, 10000U) << path;
  EXPECT_GE(static_cast<double>(report->same), same * static_cast<double>(report->judged())) << details;
  EXPECT_LE(static_cast<double>(report->incomparable), 0.02 * static_cast<double>(report->rules()))
      << details;
  EXPECT_LE(static_cast<double>(report->other_places), 0.001 * static_cast<double>(report->places))
      << details;
  EXPECT_LE(static_cast<double>(report->early_places), 0.02 * static_cast<double>(report->places));
  EXPECT_LE(static_cast<double>(report->unknown_places), 0.03 * static_cast<double>(report->places));
  const auto known = report->rules() + report->outcomes[std::size_t(CodeRow::Outcome::never_returns)];
  EXPECT_GE(100.0 * static_cast<double>(known), answered * static_cast<double>(report->addresses));
}

TEST(CodeOracle, GivesTheRulesOfLibc) { expect_same_as_cfi("libc.so.6", 11, 97); }
TEST(CodeOracle, GivesTheRulesOfLibstdcxx) { expect_same_as_cfi("libstdc++.so.6", 11, 97); }
TEST(CodeOracle, GivesTheRulesOfLibcrypto) { expect_same_as_cfi("libcrypto.so.3", 11, 97); }
TEST(CodeOracle, GivesTheRulesOfTheLinker) { expect_same_as_cfi("ld-linux-x86-64.so.2", 1, 97, 0.995); }
TEST(CodeOracle, GivesTheRulesOfLibLlvm) { expect_same_as_cfi("libLLVM-14.so.1", 1009, 97); }

}  // namespace
}  // namespace ddprof
