// Programs are compiled here and now, with every layout of debug information that the installed compilers
// know, and llvm-symbolizer is the judge of every address of their code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "symbol/dwarf/debug_info.hpp"

namespace ddprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShapes = R"(
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>
#include "shapes.hpp"
namespace {
struct Weight {
  int unit;
  explicit Weight(int value) : unit(value * 3) { if (value > 1000) throw std::out_of_range("weight"); }
  int of(const geometry::Point& point) const { return unit * geometry::length(point) + point.x; }
};
[[gnu::noinline]] int weigh(const std::vector<geometry::Point>& points, int unit) {
  const Weight weight(unit);
  return std::accumulate(points.begin(), points.end(), 0, [&](int sum, const geometry::Point& point) {
    return sum + weight.of(point) * geometry::twice(point.y);
  });
}
}  // namespace
[[gnu::noinline]] int geometry::total(int count) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) points.push_back({i, count - i});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return length(a) < length(b); });
  try {
    return weigh(points, count);
  } catch (const std::exception&) {
    return -1;
  }
}
extern "C" int plain(int);
int main(int count, char**) { return geometry::total(count * 7) + plain(count); }
)";
constexpr const char* kHeader = R"(
namespace geometry {
struct Point { int x, y; };
inline int length(const Point& point) { return point.x * point.x + point.y * point.y; }
template <typename T> T twice(T value) { return value + value / 3; }
int total(int count);
}
)";
// gcc knows functions within functions, whose code is outside of the one around them.
constexpr const char* kPlain = R"(
volatile int sink;
static inline int add(int a, int b) { sink = a; return a + b * sink; }
__attribute__((noinline)) static int apply(int (*f)(int), int value) { return f(value) + add(value, 2); }
int plain(int value) {
#ifndef __clang__
  int base = value * 3;
  __attribute__((noinline)) int nested(int x) { sink = base; return add(x, base); }
  return apply(nested, value) + nested(4);
#else
  return apply((int (*)(int))0, value);
#endif
}
)";

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// A folder with the sources, removed at the end.
class Workshop {
 public:
  Workshop() {
    std::string pattern = (fs::temp_directory_path() / "ddprof_dwarf_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write("shapes.cpp", kShapes);
    write("shapes.hpp", kHeader);
    write("plain.c", kPlain);
  }
  ~Workshop() { fs::remove_all(folder_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] bool run(const std::string& command) const {
    return std::system(("cd '" + folder_.string() + "' && (" + command + ") >log 2>&1").c_str()) == 0;
  }
  void write(const std::string& name, std::string_view text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }

 private:
  fs::path folder_;
};

struct Frame {
  std::string name;
  std::string place;  // file:line:column
};
using Frames = std::map<std::uint64_t, std::vector<Frame>>;

// Nothing is known but the symbol, and perhaps the file that it came from.
bool is_unknown(const std::vector<Frame>& frames) {
  return frames.size() == 1 && frames.front().place.ends_with(":0:0");
}

// The name without its scopes and the arguments of a template.
std::string bare(std::string name) {
  name.resize(std::min(name.find('<'), name.size()));
  const auto scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

// The judge writes names without scopes. That of the outermost function it takes from the symbol table: it
// may be mangled where debug information has no such name (static functions of gcc), and copies and cold
// parts have suffixes there (f.cold, f.part.0, f.isra.0).
bool is_same_name(const std::string& ours, const std::string& judged, bool is_outermost) {
  if (ours == judged || ours.ends_with("::" + judged)) return true;
  if (!is_outermost) return false;
  return judged.starts_with(ours + ".") || judged.find(bare(ours)) != std::string::npos;
}

testing::AssertionResult agree(const std::vector<Frame>& ours, const std::vector<Frame>& judged) {
  bool is_same = ours.size() == judged.size();
  for (std::size_t i = 0; is_same && i < ours.size(); ++i) {
    is_same =
        ours[i].place == judged[i].place && is_same_name(ours[i].name, judged[i].name, i + 1 == ours.size());
  }
  if (is_same || (is_unknown(ours) && is_unknown(judged))) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  for (const Frame& frame : ours) failure << "\n  ours: " << frame.name << " " << frame.place;
  for (const Frame& frame : judged) failure << "\n  judge: " << frame.name << " " << frame.place;
  return failure;
}

// Version 14 forgets the split units of all files but one.
constexpr const char* kNewJudge = "llvm-symbolizer-19";
std::string judge_program() { return has_program(kNewJudge) ? kNewJudge : "llvm-symbolizer"; }

Frames judge(const Workshop& shop, const std::string& program) {
  Frames frames;
  if (!shop.run(judge_program() + " --obj=" + program + " --no-demangle --inlines -a <addresses >judged"))
    return frames;
  std::istringstream lines(shop.read("judged"));
  for (std::string line; std::getline(lines, line);) {
    auto& chain = frames[std::strtoull(line.c_str(), nullptr, 16)];
    for (Frame frame; std::getline(lines, frame.name) && !frame.name.empty(); chain.push_back(frame))
      std::getline(lines, frame.place);
  }
  return frames;
}

// Files beside the program.
class FilesInFolder : public DebugFileSource {
 public:
  FilesInFolder(const Workshop& shop, std::string program) : shop_(shop), program_(std::move(program)) {}
  const ElfFile* supplementary(std::string_view path, const BuildId&) override {
    return open(shop_.path(fs::path(path).filename()));
  }
  const ElfFile* split_unit(std::string_view directory, std::string_view name) override {
    return open(fs::path(directory) / name);
  }
  const ElfFile* package() override { return open(shop_.path(program_ + ".dwp")); }
  const ElfFile* open(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return nullptr;
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    const std::string& kept = images_.emplace_back(std::move(bytes).str());
    auto file = ElfFile::parse(std::as_bytes(std::span(kept)));
    return file.ok() ? &files_.emplace_back(std::move(file).value()) : nullptr;
  }

 private:
  const Workshop& shop_;
  std::string program_;
  std::deque<std::string> images_;
  std::deque<ElfFile> files_;
};

Frame as_judged(const SourceCall& call) {
  const std::string name(call.linker_name.empty() ? call.name : call.linker_name);
  const std::string file(call.file.empty() ? "??" : call.file);
  return {name.empty() ? "??" : name,
          file + ":" + std::to_string(call.line) + ":" + std::to_string(call.column)};
}

Frames ours(FilesInFolder& files, const ElfFile& file, const std::vector<std::uint64_t>& addresses) {
  Frames frames;
  for (const std::uint64_t address : addresses) frames[address] = {{"??", "??:0:0"}};
  auto info = DebugInfo::open(file, files);
  EXPECT_TRUE(info.ok());
  if (!info.ok()) return frames;
  const std::size_t dealt_with = info->find(
      addresses,
      [&](std::uint64_t address, std::span<const SourceCall> calls) {
        auto& chain = frames[address];
        chain.clear();
        for (const SourceCall& call : calls) chain.push_back(as_judged(call));
      },
      [] { return true; });
  EXPECT_EQ(dealt_with, addresses.size());
  EXPECT_EQ(info->problem(), "");
  return frames;
}

// Of gcc's version 5 no package is made here: llvm-dwp 19 does not end on it, and Debian 12's dwp does not
// know version 5.
constexpr const char* kPackage = "llvm-dwp-19 -e program -o program.dwp && rm *.dwo";

struct Layout {
  std::string name;
  std::string compiler;  // gcc or clang
  std::string flags;
  std::string afterwards = "true";  // on the finished program
  std::string needs = "true";
  std::string judged = "program";  // which copy of it the judge reads
  bool has_all_functions = true;   // those without inlined calls too
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) { return out << layout.name; }

class DebugInfoOracle : public testing::TestWithParam<Layout> {};

TEST_P(DebugInfoOracle, AgreesOnEveryAddress) {
  const Layout& layout = GetParam();
  for (const std::string& program : {judge_program(), layout.compiler, layout.needs}) {
    if (!has_program(program)) GTEST_SKIP() << program << " is not installed";
  }
  const Workshop shop;
  const std::string cxx = layout.compiler == "gcc" ? "g++" : "clang++";
  ASSERT_TRUE(shop.run(layout.compiler + " -O2 -c plain.c " + layout.flags) &&
              shop.run(cxx + " -O2 -c shapes.cpp " + layout.flags) &&
              shop.run(cxx + " plain.o shapes.o -o program " + layout.flags) && shop.run(layout.afterwards))
      << shop.read("log");

  FilesInFolder files(shop, "program");
  const ElfFile* file = files.open(shop.path("program"));
  ASSERT_NE(file, nullptr);
  const auto text = file->find_section(".text");
  ASSERT_TRUE(text.has_value());
  std::vector<std::uint64_t> addresses;
  std::ostringstream list;
  for (std::uint64_t address = text->vaddr; address < text->vaddr + text->size; ++address) {
    addresses.push_back(address);
    list << "0x" << std::hex << address << "\n";
  }
  shop.write("addresses", list.str());
  const Frames expected = judge(shop, layout.judged);
  ASSERT_EQ(expected.size(), addresses.size());
  Frames actual = ours(files, *file, addresses);
  std::size_t inlined = 0;
  for (const std::uint64_t address : addresses) {
    std::vector<Frame>& chain = actual.at(address);
    const std::vector<Frame>& judged = expected.at(address);
    if (!layout.has_all_functions && chain.back().name == "??") chain.back().name = judged.back().name;
    EXPECT_TRUE(agree(chain, judged)) << std::hex << address;
    inlined += judged.size() > 2 ? 1 : 0;
    if (HasNonfatalFailure()) break;
  }
  EXPECT_GT(inlined, 100U);
}

// The judge does not know supplementary files: there it reads the program as it was before dwz.
INSTANTIATE_TEST_SUITE_P(
    Layouts, DebugInfoOracle,
    testing::Values(
        Layout{"gcc_dwarf_2", "gcc", "-gdwarf-2"}, Layout{"gcc_dwarf_3", "gcc", "-gdwarf-3"},
        Layout{"gcc_dwarf_4", "gcc", "-gdwarf-4"}, Layout{"gcc_dwarf_5", "gcc", "-gdwarf-5"},
        Layout{"gcc_dwarf_64", "gcc", "-gdwarf64 -gdwarf-5"}, Layout{"gcc_least", "gcc", "-g1"},
        Layout{"gcc_compressed", "gcc", "-g -gz=zlib"},
        Layout{"gcc_sections", "gcc", "-g -ffunction-sections -Wl,--gc-sections -fdebug-types-section"},
        Layout{"gcc_link_time", "gcc", "-g -flto"},
        Layout{"gcc_split_4", "gcc", "-gdwarf-4 -gsplit-dwarf", "true", kNewJudge},
        Layout{"gcc_split_5", "gcc", "-gdwarf-5 -gsplit-dwarf", "true", kNewJudge},
        Layout{"gcc_package_4", "gcc", "-gdwarf-4 -gsplit-dwarf", kPackage, kNewJudge},
        Layout{"gcc_dwz", "gcc", "-g", "dwz program", "dwz"},
        Layout{"gcc_dwz_shared", "gcc", "-g",
               "cp program whole && cp program twin && dwz -m common.debug program twin", "dwz", "whole"},
        Layout{"clang_dwarf_2", "clang", "-gdwarf-2"}, Layout{"clang_dwarf_3", "clang", "-gdwarf-3"},
        Layout{"clang_dwarf_4", "clang", "-gdwarf-4"}, Layout{"clang_dwarf_5", "clang", "-gdwarf-5"},
        Layout{"clang_lines", "clang", "-gline-tables-only", "true", "true", "program", false},
        Layout{"clang_split_4", "clang", "-gdwarf-4 -gsplit-dwarf", "true", kNewJudge},
        Layout{"clang_split_5", "clang", "-gdwarf-5 -gsplit-dwarf", "true", kNewJudge},
        Layout{"clang_package_5", "clang", "-gdwarf-5 -gsplit-dwarf", kPackage, kNewJudge}),
    [](const auto& layout) { return layout.param.name; });

}  // namespace
}  // namespace ddprof
