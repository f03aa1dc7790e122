#include "doctor/java_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "process/address_space.hpp"
#include "process/foreign_memory.hpp"
#include "process/jit_runtime.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20U;
constexpr std::uint64_t kLeastThreads = 4;  // compilers and the collector of garbage have their own

bool maps_libjvm(std::string_view maps) {
  const std::vector<ProcMapsLine> lines = parse_executable_maps(maps);
  return std::any_of(lines.begin(), lines.end(), [](const ProcMapsLine& line) {
    return runtime_of_file(line.path.substr(line.path.rfind('/') + 1)) == JitRuntime::java;
  });
}

// Of two that contradict each other the later one holds; a command line comes after the environment.
std::optional<bool> last_choice(std::string_view text) {
  const std::size_t with = text.rfind("-XX:+PreserveFramePointer");
  const std::size_t without = text.rfind("-XX:-PreserveFramePointer");
  if (with == without) return std::nullopt;  // neither is there
  return without == std::string_view::npos || (with != std::string_view::npos && with > without);
}

}  // namespace

bool keeps_frame_pointers(std::string_view command_line, std::string_view environment) {
  if (const auto chosen = last_choice(command_line)) return *chosen;
  return last_choice(environment).value_or(false);
}

std::vector<JavaProcess> find_java_processes() {
  ForeignMemory memory;
  const auto text = [&](Pid pid, const char* name, std::size_t most) {
    return memory.read_file(pid, name, most).value_or({});
  };
  std::vector<JavaProcess> found;
  for (const RunningProcess& process : list_processes()) {
    if (process.threads < kLeastThreads || !maps_libjvm(text(process.pid, "maps", kMaxMapsBytes))) continue;
    found.push_back({process.pid, process.name,
                     keeps_frame_pointers(text(process.pid, "cmdline", kMaxTextBytes),
                                          text(process.pid, "environ", kMaxTextBytes))});
  }
  return found;
}

std::optional<Finding> check_java(std::span<const JavaProcess> processes) {
  const auto is_cut = [](const JavaProcess& process) { return !process.has_frame_pointers; };
  const auto first = std::find_if(processes.begin(), processes.end(), is_cut);
  if (first == processes.end()) return std::nullopt;
  const auto others = std::count_if(processes.begin(), processes.end(), is_cut) - 1;
  Finding finding{.name = "java", .state = CheckState::limited};
  finding.fact =
      fmt::format("process {}{} keeps no frame pointers", describe_process(first->pid, first->name),
                  others > 0 ? fmt::format(" (and {} more)", others) : "");
  finding.meaning = "stacks in code that Java compiles are cut";
  finding.hint = {fmt::format("start it with -XX:+PreserveFramePointer; for names: jcmd {} Compiler.perfmap",
                              to_int(first->pid)),
                  "--env JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer",
                  "env JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer"};
  return finding;
}

}  // namespace ddprof
