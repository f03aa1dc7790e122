#include "session/source_reader.hpp"

#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

// What the tests ask for: its own lines.
__attribute__((noinline)) int function_to_find(int value) { return value * 3; }
constexpr std::uint32_t kLineOfFunction = __LINE__ - 1;

std::uint64_t load_bias() {
  std::uint64_t bias = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
        return 1;  // the first one is the program itself
      },
      &bias);
  return bias;
}

class SourceReaderTest : public testing::Test {
 protected:
  ~SourceReaderTest() override { std::filesystem::remove_all(folder_); }

  SourceReader::Wanted wanted() {
    const FileId id = files_.find_or_open(Pid{::getpid()}, {}, {},
                                          {.path = std::filesystem::read_symlink("/proc/self/exe")});
    EXPECT_NE(function_to_find(1), 1);
    const auto address = reinterpret_cast<std::uint64_t>(&function_to_find) - load_bias();
    return {id, files_.file(id), {address}, 1};
  }
  static SourceReader::Deadline soon() { return std::chrono::steady_clock::now() + 60s; }

  static void expect_found(SourceReader& reader, const SourceReader::Wanted& wanted) {
    const auto known = reader.known();
    const auto calls = known.find(wanted.id, wanted.addresses.front());
    ASSERT_TRUE(calls.has_value());
    ASSERT_EQ(calls->size(), 1U);
    EXPECT_TRUE(calls->front().file.ends_with("source_reader_test.cpp")) << calls->front().file;
    EXPECT_EQ(calls->front().line, kLineOfFunction);
    EXPECT_EQ(known.source(wanted.id).unread, 0U);
  }

  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  std::string folder_ = testing::TempDir() + "source_reader_test_" + std::to_string(::getpid());
};

TEST_F(SourceReaderTest, FindsItsOwnLines) {
  SourceReader reader("");
  const auto asked = wanted();
  reader.read({asked}, soon());
  expect_found(reader, asked);
  EXPECT_EQ(reader.known().source(asked.id).description, "debug information");
}

TEST_F(SourceReaderTest, GoesOnReadingWhenNobodyWaitsAnyLonger) {
  SourceReader reader("");
  const auto asked = wanted();
  reader.read({asked}, std::chrono::steady_clock::now() - 1s);
  reader.read({asked}, soon());
  expect_found(reader, asked);
}

TEST_F(SourceReaderTest, KeepsNamesForTheNextRun) {
  std::filesystem::create_directories(folder_);
  const auto asked = wanted();
  {
    SourceReader first(folder_ + "/cache/ddprof");
    first.read({asked}, soon());
  }
  if (asked.file->build_id.empty()) GTEST_SKIP() << "this program has no build id";
  SourceReader second(folder_ + "/cache/ddprof");
  second.read({asked}, std::chrono::steady_clock::now() - 1s);  // no time to read anything
  expect_found(second, asked);
}

TEST_F(SourceReaderTest, KnowsNothingOfAddressesOutsideOfTheCode) {
  SourceReader reader("");
  auto asked = wanted();
  asked.addresses = {1};
  reader.read({asked}, soon());
  const auto calls = reader.known().find(asked.id, 1);
  ASSERT_TRUE(calls.has_value());
  EXPECT_TRUE(calls->empty());
}

TEST_F(SourceReaderTest, AFileThatWasAskedForEarlierIsStillRead) {
  const auto asked = wanted();
  auto other = asked;
  other.id = FileId{99};
  SourceReader reader("");
  reader.read({asked, other}, std::chrono::steady_clock::now() - 1s);
  reader.read({asked}, soon());
  expect_found(reader, asked);
  EXPECT_TRUE(reader.known().find(other.id, other.addresses.front()));
}

TEST_F(SourceReaderTest, ForgetsFilesThatAreGone) {
  SourceReader reader("");
  const auto asked = wanted();
  reader.read({asked}, soon());
  reader.forget_except(files_.files());
  expect_found(reader, asked);
  reader.forget_except({});
  EXPECT_FALSE(reader.known().find(asked.id, asked.addresses.front()));
  EXPECT_EQ(reader.known().source(asked.id).description, "");
  reader.read({asked}, soon());
  expect_found(reader, asked);
}

TEST_F(SourceReaderTest, TellsTheCpuTimeOfItsThreadAlone) {
  SourceReader reader("");
  EXPECT_EQ(reader.cpu_time(), 0ns);  // there is none yet
  reader.read({wanted()}, soon());
  EXPECT_GT(reader.cpu_time(), 0ns);
  EXPECT_LT(reader.cpu_time(), 60s);
}

}  // namespace
}  // namespace ddprof
