#include "session/generated_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

// Of the samples of the process.
bool matters(std::int64_t part, const GeneratedCodeUse& use) { return part > 0 && part * 100 >= use.samples; }

// "4711 (java), 4712 (java)", at most three of them.
std::string who(std::span<const GeneratedCodeUse* const> uses) {
  constexpr std::size_t kShown = 3;
  std::string text = uses.size() == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < uses.size() && i < kShown; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", describe_process(uses[i]->pid, uses[i]->process));
  return uses.size() > kShown ? text + fmt::format(" and {} more", uses.size() - kShown) : text;
}

std::string cut_hint(JitRuntime runtime, std::span<const GeneratedCodeUse* const> uses) {
  std::int64_t samples = 0;
  std::int64_t cut = 0;
  for (const GeneratedCodeUse* use : uses) {
    samples += use->samples;
    cut += use->cut;
  }
  return fmt::format("{}: {:.0f} % of stacks end in generated code, which keeps no frame pointers: {}",
                     who(uses), 100.0 * static_cast<double>(cut) / static_cast<double>(samples),
                     runtime == JitRuntime::java ? "start Java with -XX:+PreserveFramePointer"
                                                 : "tell its compiler to keep them");
}

std::string names_hint(JitRuntime runtime, std::span<const GeneratedCodeUse* const> uses) {
  const std::string text = fmt::format("{}: generated code has no names: ", who(uses));
  if (runtime == JitRuntime::java)
    return text + fmt::format(
                      "while it runs, jcmd {} Compiler.perfmap; or start Java with "
                      "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
                      uses.size() == 1 ? fmt::to_string(to_int(uses.front()->pid)) : "PID");
  if (runtime == JitRuntime::node) return text + "start it with node --perf-basic-prof";
  return text + "its compiler would have to write /tmp/perf-PID.map or a jitdump";
}

}  // namespace

std::vector<GeneratedCodeUse> generated_code_in(const ClosedPeriod& period) {
  std::map<std::int32_t, GeneratedCodeUse> by_pid;
  period.files.for_each([&](FileId id, const std::shared_ptr<const CodeFile>& file) {
    if (file->kind != CodeFile::Kind::jit) return;
    const auto runtime = period.runtimes.find(id);
    by_pid[to_int(file->pid)] = {
        .pid = file->pid,
        .runtime = runtime != period.runtimes.end() ? runtime->second : JitRuntime::unknown};
  });
  if (by_pid.empty()) return {};
  const auto is_generated = [&](const Frame& frame) {
    const CodeFile* file = period.files[frame.file].get();
    return file != nullptr && file->kind == CodeFile::Kind::jit;
  };
  for (const ClosedPart& part : period.parts) {
    const AggregatedProfile& profile = part.profile;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const std::uint32_t thread = profile.samples[i].thread;
      const auto use = by_pid.find(to_int(profile.threads[thread].pid));
      if (use == by_pid.end()) continue;
      bool is_through = false, is_cut = false;
      for (const std::uint32_t at : profile.stack(profile.samples[i].stack)) {
        const Frame& frame = profile.frames[at];
        is_through |= frame.kind == FrameKind::user && is_generated(frame);
        is_cut |= frame.kind == FrameKind::stopped && is_generated(frame);
      }
      const std::int64_t count = profile.sample_values(i).front();
      use->second.process = part.labels[thread].process;
      use->second.samples += count;
      use->second.through += is_through ? count : 0;
      use->second.cut += is_cut ? count : 0;
    }
  }
  std::vector<GeneratedCodeUse> uses;
  for (auto& [pid, use] : by_pid) uses.push_back(std::move(use));
  return uses;
}

std::vector<std::string> generated_code_hints(std::span<const GeneratedCodeUse> uses) {
  std::map<JitRuntime, std::vector<const GeneratedCodeUse*>> cut, nameless;
  for (const GeneratedCodeUse& use : uses) {
    if (matters(use.cut, use)) cut[use.runtime].push_back(&use);
    if (!use.has_names && matters(use.through, use)) nameless[use.runtime].push_back(&use);
  }
  std::vector<std::string> hints;
  for (const auto& [runtime, of_runtime] : cut) hints.push_back(cut_hint(runtime, of_runtime));
  for (const auto& [runtime, of_runtime] : nameless) hints.push_back(names_hint(runtime, of_runtime));
  return hints;
}

}  // namespace ddprof
