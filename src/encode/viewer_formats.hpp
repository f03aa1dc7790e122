#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// The version of the processed format that is written: the front-end upgrades older ones, and other native
// profilers write the same.
inline constexpr int kFirefoxVersion = 66;

// What "more info" in the viewer says about the file, and what we look for when we read it again.
inline constexpr std::string_view kFirefoxExporter = "ddprof ";
inline constexpr std::string_view kFirefoxWeights = "Weights";  // "cpu/nanoseconds"
inline constexpr std::string_view kFirefoxTimes = "Times";
inline constexpr std::string_view kFirefoxMeasured = "measured";
inline constexpr std::string_view kFirefoxComment = "Comment";

// JSON for https://profiler.firefox.com, in its processed format. It has one weight per sample: the default
// column. Samples without an end_timestamp_ns are laid out one behind the other, each as long as its value.
std::string encode_firefox(const Profile& profile);

// JSON for https://www.speedscope.app: one entry per thread and value column, stacks root first. With several
// threads the first entries hold all of them together, which is what opens.
//
// A frame is a function: its line is where the function begins, because speedscope tells frames apart by line
// and would show one function in pieces. Where no source file is known the module's path stands for it.
//
// Fails for negative values (a diff), which the viewer refuses.
Result<std::string> encode_speedscope(const Profile& profile);

// "process;main;work 30303030" per distinct stack: root first, sums of the default column, sorted. What was
// lost or truncated is there too, as a frame in brackets. The first frame is the process, where one is known.
//
// The format has no place for what the numbers are. The first line says it, "# value: cpu nanoseconds 0", in
// the form of a stack of no weight: flamegraph.pl and inferno draw nothing for it. A comment without a number
// would be refused by speedscope, which takes a file for folded stacks if every line ends in one.
std::string encode_folded(const Profile& profile);
inline constexpr std::string_view kFoldedValue = "# value: ";

// The default column as a flame graph in one file: a picture 1,200 wide that needs no script, and the script
// (flamegraph_script.js) that makes it fit the window, zoom, search and explain. It asks for nothing from
// outside. All numbers are in it as integers, in the JSON of the element "data":
//   modules  names, the largest first
//   frames   [name, module, "file:line", CSS class, 1 for processes]
//   nodes    four numbers for each node, callers before callees: depth, frame, value, and 1 when it was
//   always
//            inlined into its caller or 2 when sometimes. Frame -1: callees of the node above that are too
//            small to be nodes; the fourth number is how many.
Result<std::string> encode_flamegraph_svg(const Profile& profile);

// An entry of a speedscope file has a name and nothing else to say whose it is:
// "worker · tid 125 · split · pid 123 · cpu". Parts that are not known are left out.
struct SpeedscopeTitle {
  std::string thread, tid, process, pid;
  std::string column;
  bool is_sum = false;  // all threads together: the same samples once more
};

std::string speedscope_title(const SpeedscopeTitle& title);

// The other way, for entries that we wrote ourselves.
SpeedscopeTitle parse_speedscope_title(std::string_view text);

}  // namespace ddprof
