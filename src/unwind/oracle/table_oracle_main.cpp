// Compares the unwind tables of ELF files with libdw's reading of their CFI.
//   table_oracle [--samples N] FILE...          the files
//   table_oracle [--samples N] --all DIR...     every ELF file below the directories
// Exits with 1 when any rule differs.
#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "unwind/oracle/table_oracle.hpp"

namespace ddprof {
namespace {

struct Options {
  std::size_t samples = 2000;
  std::vector<std::string> paths;
};

struct Totals {
  std::size_t files = 0;
  OracleReport sum;
};

void add_all_below(const std::string& directory, std::vector<std::string>& paths) {
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(directory, options, error);
       at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (error) break;
    if (at->is_regular_file(error) && !at->is_symlink(error)) paths.push_back(at->path().string());
  }
}

Options parse_options(const std::vector<std::string_view>& arguments) {
  Options options;
  bool all = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--samples" && i + 1 < arguments.size()) {
      const std::string_view number = arguments[++i];
      std::from_chars(number.data(), number.data() + number.size(), options.samples);
    } else if (word == "--all") {
      all = true;
    } else if (all) {
      add_all_below(std::string(word), options.paths);
    } else {
      options.paths.emplace_back(word);
    }
  }
  return options;
}

void print_line(std::string_view name, const OracleReport& report) {
  fmt::print(
      "{:>9} {:>9.2f} {:>6.2f} {:>6} {:>5} {:>5} {:>9} {:>7} {:>5} {:>6} {:>5}  {}\n", report.rows,
      report.build_ms,
      report.rows != 0 ? static_cast<double>(report.table_bytes) / static_cast<double>(report.rows) : 0.0,
      report.unsupported_rows, report.bad_entries, report.stray_entries, report.compared, report.popped,
      report.refused, report.unsupported, report.mismatches, name);
}

void add(Totals& totals, const OracleReport& report) {
  ++totals.files;
  totals.sum.rows += report.rows;
  totals.sum.table_bytes += report.table_bytes;
  totals.sum.unsupported_rows += report.unsupported_rows;
  totals.sum.bad_entries += report.bad_entries;
  totals.sum.stray_entries += report.stray_entries;
  totals.sum.build_ms += report.build_ms;
  totals.sum.compared += report.compared;
  totals.sum.unsupported += report.unsupported;
  totals.sum.popped += report.popped;
  totals.sum.refused += report.refused;
  totals.sum.mismatches += report.mismatches;
}

void check(const std::string& path, std::size_t samples, RuleDictionary& dictionary, Totals& totals) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return;
  const auto region = MappedRegion::map_file(fd.get());
  if (!region) return;
  const auto report = compare_with_libdw(region->bytes(), dictionary, samples);
  if (!report || report->rows == 0) return;  // not an ELF file of ours, or one without CFI
  add(totals, *report);
  print_line(path, *report);
  for (const std::string& detail : report->details) fmt::print("    {}\n", detail);
}

int run(const std::vector<std::string_view>& arguments) {
  const Options options = parse_options(arguments);
  if (options.paths.empty()) {
    fmt::print(stderr, "usage: table_oracle [--samples N] FILE... | --all DIR...\n");
    return 2;
  }
  RuleDictionary dictionary;
  Totals totals;
  fmt::print("{:>9} {:>9} {:>6} {:>6} {:>5} {:>5} {:>9} {:>7} {:>5} {:>6} {:>5}  file\n", "rows", "build ms",
             "B/row", "unsup", "bad", "stray", "compared", "popped", "refsd", "unsup", "wrong");
  for (const std::string& path : options.paths) check(path, options.samples, dictionary, totals);
  print_line(fmt::format("TOTAL of {} files, {} rules", totals.files, dictionary.size()), totals.sum);
  return totals.sum.mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ddprof

int main(int argc, char** argv) { return ddprof::run({argv + 1, argv + argc}); }
