// Compares unwind rules made from instructions with the CFI of the same addresses.
//   code_oracle [--every N] [--details N] FILE...
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "unwind/oracle/code_oracle.hpp"

namespace ddprof {
namespace {

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::uint32_t quantile(std::vector<std::uint32_t>& values, double share) {
  if (values.empty()) return 0;
  const auto index = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[static_cast<std::size_t>(index)];
}

void check(const std::string& path, std::size_t stride, std::size_t details) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return;
  const auto region = MappedRegion::map_file(fd.get());
  if (!region) return;
  auto report = compare_code_with_cfi(region->bytes(), stride, details);
  if (!report || report->addresses == 0) return;
  fmt::print("{}\n", path);
  fmt::print(
      "  addresses {}, with a rule {:.2f} %; of {} judged the same {:.4f} %, other cfa {}, other fp {}; "
      "wrong CFI {}, "
      "not comparable {}\n",
      report->addresses, percent(report->rules(), report->addresses), report->judged(),
      percent(report->same, report->judged()), report->other_cfa, report->other_fp, report->wrong_cfi,
      report->incomparable);
  fmt::print("  never returns {}, unknown jump {}, too long {}, contradiction {}, not expressible {}\n",
             report->outcomes[1], report->outcomes[2], report->outcomes[3], report->outcomes[4],
             report->outcomes[5]);
  fmt::print(
      "  places of rbx and r12 to r15: {}, unknown {}, not told yet by CFI {}, other than CFI says "
      "{}\n",
      report->places, report->unknown_places, report->early_places, report->other_places);
  const auto slow = std::count_if(report->nanoseconds.begin(), report->nanoseconds.end(),
                                  [](std::uint32_t taken) { return taken > 50000; });
  fmt::print(
      "  instructions: median {}, 99 % {}, most {}; CPU ns: median {}, 99 % {}, most {}; above 50 us {:.2f} "
      "%\n",
      quantile(report->instructions, 0.5), quantile(report->instructions, 0.99),
      quantile(report->instructions, 1), quantile(report->nanoseconds, 0.5),
      quantile(report->nanoseconds, 0.99), quantile(report->nanoseconds, 1),
      percent(static_cast<std::uint64_t>(slow), report->addresses));
  for (const std::string& detail : report->details) fmt::print("    {}\n", detail);
}

int run(const std::vector<std::string_view>& arguments) {
  std::size_t stride = 1;
  std::size_t details = 20;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if ((word == "--every" || word == "--details") && i + 1 < arguments.size()) {
      const std::string_view number = arguments[++i];
      std::from_chars(number.data(), number.data() + number.size(), word == "--every" ? stride : details);
    } else {
      check(std::string(word), std::max<std::size_t>(stride, 1), details);
    }
  }
  return 0;
}

}  // namespace
}  // namespace ddprof

int main(int argc, char** argv) { return ddprof::run({argv + 1, argv + argc}); }
