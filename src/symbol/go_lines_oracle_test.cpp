// Real Go programs without debug information, judged by what llvm-symbolizer and Go's own addr2line say of
// their twins with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/read_file.hpp"
#include "symbol/go_lines.hpp"

namespace ddprof {
namespace {

constexpr const char* kProgram = R"(package main

import (
	"os"
	"sort"
	"strings"
)

type shape interface{ area() int }
type square struct{ side int }

func (s square) area() int { return twice(s.side) * s.side / 2 }
func twice(value int) int { return plus(value, value) }
func plus(a, b int) int {
	return a + b
}
func largest[T int | float64](values []T) T {
	result := values[0]
	for _, value := range values {
		if value > result {
			result = value
		}
	}
	return result
}

//go:noinline
func work(limit int) int {
	var shapes []shape
	for i := 0; i < limit; i++ {
		shapes = append(shapes, square{twice(plus(i, 1))})
	}
	sort.Slice(shapes, func(i, j int) bool { return shapes[i].area() > shapes[j].area() })
	return shapes[0].area() + len(strings.Fields(strings.Repeat("a b ", limit)))
}

func main() {
	defer func() { recover() }()
	if work(len(os.Args))+largest([]int{1, 2})+int(largest([]float64{1})) < 0 {
		panic("never")
	}
}
)";

struct GoPipeCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

std::string what_says(const std::string& command) {
  const std::unique_ptr<std::FILE, GoPipeCloser> pipe(popen(command.c_str(), "r"));
  std::string text;
  char piece[4096];
  while (pipe && std::fgets(piece, sizeof piece, pipe.get()) != nullptr) text += piece;
  return text;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  const std::string text = read_file(path, std::size_t{1} << 30U).value();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// The calls at an address as llvm-symbolizer writes them, less the column, which Go's table does not have.
std::string described(std::span<const SourceCall> calls) {
  std::string text;
  for (const SourceCall& call : calls) text += fmt::format("{}\n{}:{}\n", call.name, call.file, call.line);
  return text;
}

struct Variant {
  const char* environment;
  const char* flags;
};

class GoLinesOracle : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (std::system("command -v go >/dev/null 2>&1") != 0) GTEST_SKIP() << "go is not installed";
    if (std::system("command -v llvm-symbolizer >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "llvm-symbolizer is not installed";
    std::string name = testing::TempDir() + "ddprof_go_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "main.go") << kProgram;
    ASSERT_TRUE(build("full", ""));
    ASSERT_TRUE(build("stripped", "-s -w"));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  bool build(const std::string& name, const std::string& linker_flags) {
    // The cache outlives the test: the standard library takes a while.
    const std::string command = fmt::format(
        "cd {} && GO111MODULE=off GOFLAGS= GOCACHE={}/build/go_cache {} go build {} -ldflags='{}' -o {} "
        "main.go",
        folder_.string(), DDPROF_SOURCE_DIR, GetParam().environment, GetParam().flags, linker_flags, name);
    return std::system(command.c_str()) == 0;
  }

  // Starts of functions, and addresses inside of them.
  static std::vector<std::uint64_t> addresses_of(const GoTable& table) {
    std::vector<std::uint64_t> addresses;
    for (std::size_t index = 0; index < table.function_count; ++index) {
      const std::uint64_t begin = table.begin_of(index), end = table.begin_of(index + 1);
      for (std::uint64_t at = begin; at < end; at += 52) addresses.push_back(at);
    }
    return addresses;
  }

  std::string judge(const std::string& tool, const std::vector<std::uint64_t>& addresses) {
    std::ofstream list(folder_ / "addresses");
    for (const std::uint64_t address : addresses) list << fmt::format("{:#x}\n", address);
    list.close();
    return what_says(fmt::format("{} < {}/addresses", tool, folder_.string()));
  }

  std::filesystem::path folder_;
};

// What debug information writes in another way, and only that: assembly by the name of the linker's symbol,
// sizes and types in brackets, which Go's table leaves out.
std::string as_in_table(std::string function) {
  for (const std::string_view suffix : {".abi0", ".abiinternal"}) {
    if (function.ends_with(suffix)) function.resize(function.size() - suffix.size());
  }
  const std::size_t open = function.find('['), close = function.rfind(']');
  if (open != std::string::npos && close != std::string::npos)
    function.replace(open, close - open + 1, "[...]");
  return function;
}

// One answer of llvm-symbolizer: two lines for each call, then an empty one. "??" means none.
std::string next_answer(std::istream& judged) {
  std::string answer, function, place;
  while (std::getline(judged, function) && !function.empty()) {
    std::getline(judged, place);
    if (function == "??") continue;
    place = place.substr(0, place.rfind(':'));
    if (place.starts_with("./<autogenerated>")) place.erase(0, 2);
    answer += as_in_table(function) + "\n" + place + "\n";
  }
  return answer;
}

TEST_P(GoLinesOracle, SaysOfAStrippedProgramWhatDebugInformationSaysOfItsTwin) {
  const auto image = bytes_of(folder_ / "stripped");
  const auto file = ElfFile::parse(image);
  ASSERT_TRUE(file.ok());
  const auto lines = GoLines::find(*file);
  ASSERT_TRUE(lines.has_value());
  EXPECT_TRUE(lines->knows_inlined_calls());
  const auto addresses = addresses_of(*GoTable::find(*file));
  ASSERT_GT(addresses.size(), 5000U);
  std::istringstream judged(judge(fmt::format("llvm-symbolizer --obj={}/full", folder_.string()), addresses));
  std::size_t inlined = 0, in_wrappers = 0;
  for (const std::uint64_t address : addresses) {
    std::string found;
    bool is_wrapper = false;
    lines->find(address, [&](std::span<const SourceCall> calls) {
      found = described(calls);
      inlined += calls.size() > 1 ? 1 : 0;
      is_wrapper = calls.size() > 1 && calls.back().file == "<autogenerated>";
    });
    const std::string expected = next_answer(judged);
    // Debug information does not tell what was inlined into methods that the compiler made up.
    in_wrappers += is_wrapper ? 1 : 0;
    if (!is_wrapper) {
      EXPECT_EQ(found, expected) << fmt::format("at {:#x}", address);
    }
  }
  EXPECT_GT(inlined, 500U);
  EXPECT_LT(in_wrappers, addresses.size() / 100);
}

TEST_P(GoLinesOracle, AgreesWithGosOwnTool) {
  // It does not know where the loader will put the code of a position-independent program.
  if (std::string_view(GetParam().flags).find("pie") != std::string_view::npos) return;
  const auto image = bytes_of(folder_ / "stripped");
  const auto file = ElfFile::parse(image);
  const auto lines = GoLines::find(*file);
  ASSERT_TRUE(lines.has_value());
  std::vector<std::uint64_t> addresses;
  std::vector<std::string> places;
  for (const std::uint64_t address : addresses_of(*GoTable::find(*file))) {
    lines->find(address, [&](std::span<const SourceCall> calls) {
      addresses.push_back(address);
      places.push_back(fmt::format("{}:{}", calls[0].file, calls[0].line));
    });
  }
  std::istringstream judged(judge(fmt::format("go tool addr2line {}/full", folder_.string()), addresses));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::string function, place;
    std::getline(judged, function);
    std::getline(judged, place);
    ASSERT_EQ(places[i], place) << fmt::format("at {:#x}", addresses[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GoLinesOracle,
                         testing::Values(Variant{"", ""}, Variant{"CGO_ENABLED=0", "-buildmode=pie"}));

}  // namespace
}  // namespace ddprof
