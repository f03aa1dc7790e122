// The names of real Rust programs, judged by LLVM's own reader (v0) and by a slow, obvious one (legacy).
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "symbol/demangle.hpp"

namespace ddprof {
namespace {

constexpr const char* kRustProgram = R"(
use std::collections::BTreeMap;
use std::fmt::Display;

trait Shape { fn area(&self) -> u64; }
struct Square<const SIDE: u64>;
impl<const SIDE: u64> Shape for Square<SIDE> {
    #[inline(never)]
    fn area(&self) -> u64 { SIDE * SIDE }
}
mod outer { pub mod inner {
    #[inline(never)]
    pub fn apply<F: Fn(&str, [u8; 3]) -> (i32, char)>(f: F) -> i32 { f("x", [1, 2, 3]).0 }
} }
#[inline(never)]
fn show<T: Display + ?Sized>(value: &T) -> String { format!("<{}>", value) }
#[inline(never)]
fn größe(pointer: *const u8, callback: fn(u32) -> bool) -> bool { callback(pointer as u32) }
fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square::<3>), Box::new(Square::<5>)];
    let mut map: BTreeMap<String, u64> = BTreeMap::new();
    for shape in &shapes { map.insert(show(&shape.area()), shape.area()); }
    let total = outer::inner::apply(|text, bytes| (text.len() as i32 + bytes[0] as i32, 'a'));
    println!("{} {} {:?} {}", show("text"), total, map, größe(&0u8, |n| n > 3));
}
)";

struct RustPipeCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<std::FILE, RustPipeCloser> pipe(popen(command.c_str(), "r"));
  std::vector<std::string> lines(1);
  for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;) {
    if (letter == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(letter);
    }
  }
  lines.pop_back();
  return lines;
}

bool is_installed(const char* tool) {
  return std::system(("command -v " + std::string(tool) + " >/dev/null 2>&1").c_str()) == 0;
}

class RustNames : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* tool : {"rustc", "nm", "llvm-cxxfilt"}) {
      if (!is_installed(tool)) GTEST_SKIP() << tool << " is not installed";
    }
    std::string name = testing::TempDir() + "ddprof_rust_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "main.rs") << kRustProgram;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Names of functions of a program with this mangling that begin like it.
  std::vector<std::string> names(const std::string& mangling, const std::string& prefix) {
    const std::string in_folder = "cd " + folder_.string() + " && ";
    const std::string build =
        in_folder +
        "RUSTC_BOOTSTRAP=1 rustc -Z unstable-options -A warnings -O -C symbol-mangling-version=" + mangling +
        " -o program main.rs 2>&1";
    for (const std::string& line : lines_of(build)) ADD_FAILURE() << line;
    std::vector<std::string> result;
    for (const std::string& line : lines_of(in_folder + "nm --defined-only program")) {
      const std::size_t space = line.rfind(' ');
      const std::string name = line.substr(space + 1);
      const bool is_code = std::tolower(line[space - 1]) == 't' || line[space - 1] == 'W';
      if (is_code && name.starts_with(prefix)) result.push_back(name);
    }
    return result;
  }

  std::filesystem::path folder_;
};

// LLVM writes what was cut off in brackets behind the name, its own numbers too.
std::string as_we_write(const std::string& text) {
  const std::size_t suffix = text.rfind(" (.");
  if (suffix == std::string::npos) return bounded_name(text);
  const std::string cut = text.substr(suffix + 2, text.size() - suffix - 3);
  return bounded_name(text.substr(0, suffix) + (cut.starts_with(".llvm.") ? "" : " [clone " + cut + "]"));
}

TEST_F(RustNames, OfVersion0AreReadLikeLlvmDoes) {
  const std::vector<std::string> mangled = names("v0", "_R");
  ASSERT_GT(mangled.size(), 20U);
  std::ofstream list(folder_ / "names");
  for (const std::string& name : mangled) list << name << "\n";
  list.close();
  const auto expected = lines_of("llvm-cxxfilt < " + (folder_ / "names").string());
  ASSERT_EQ(expected.size(), mangled.size());
  for (std::size_t i = 0; i < mangled.size(); ++i)
    EXPECT_EQ(demangle(mangled[i]), as_we_write(expected[i])) << mangled[i];
}

// _ZN, then parts with their lengths, the last of which is a hash; signs are spelt out.
std::string read_slowly(const std::string& mangled) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kSigns = {{{"$LT$", "<"},
                                                                          {"$GT$", ">"},
                                                                          {"$RF$", "&"},
                                                                          {"$BP$", "*"},
                                                                          {"$LP$", "("},
                                                                          {"$RP$", ")"},
                                                                          {"$C$", ","},
                                                                          {"$SP$", "@"},
                                                                          {"..", "::"}}};
  std::istringstream in(mangled.substr(3));
  std::string result;
  for (std::size_t size = 0; in >> size;) {
    std::string part(size, ' ');
    in.read(part.data(), static_cast<std::streamsize>(size));
    if (in.peek() == 'E') break;  // the hash
    if (part.starts_with("_$")) part.erase(0, 1);
    for (const auto& [from, to] : kSigns) {
      for (std::size_t at = 0; (at = part.find(from)) != std::string::npos;)
        part.replace(at, std::string(from).size(), to);
    }
    for (std::size_t at = 0; (at = part.find("$u")) != std::string::npos;) {
      const std::size_t end = part.find('$', at + 2);
      const auto letter = std::stoul(part.substr(at + 2, end - at - 2), nullptr, 16);
      const std::string utf8 = letter < 0x80 ? std::string(1, static_cast<char>(letter))
                                             : std::string({static_cast<char>(0xc0U | letter >> 6U),
                                                            static_cast<char>(0x80U | (letter & 0x3fU))});
      part.replace(at, end - at + 1, utf8);
    }
    result += (result.empty() ? "" : "::") + part;
  }
  return result;
}

TEST_F(RustNames, OfTheLegacyKindAreReadWithoutTheirHash) {
  std::size_t count = 0;
  for (const std::string& name : names("legacy", "_ZN")) {
    const std::size_t hash = name.rfind("17h");
    if (hash == std::string::npos || name[hash + 19] != 'E') continue;  // not Rust's
    ++count;
    EXPECT_EQ(demangle(name), read_slowly(name)) << name;
  }
  EXPECT_GT(count, 10U);
}

}  // namespace
}  // namespace ddprof
