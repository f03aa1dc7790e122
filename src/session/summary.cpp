#include "session/summary.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "profile/marker.hpp"

namespace ddprof {

namespace {

std::string seconds(std::int64_t nanoseconds) {
  return fmt::format("{:.3f} s", static_cast<double>(nanoseconds) / 1e9);
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// "no unwind info in libfoo.so": the marker frame's text without its brackets and first word.
std::string reason_text(StopReason reason, const std::string& module) {
  std::string text = marker_name({.kind = FrameKind::stopped, .reason = reason}, module);
  std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  return text.substr(colon + 2, text.size() - colon - 3);
}

// Reasons by their text, most frequent first: some name the module, for others it says nothing.
std::vector<std::pair<std::string, std::uint64_t>> stop_reasons(const Summary& summary) {
  std::map<std::string, std::uint64_t> by_text;
  for (const auto& [key, count] : summary.stopped) by_text[reason_text(key.first, key.second)] += count;
  std::vector<std::pair<std::string, std::uint64_t>> sorted(by_text.begin(), by_text.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return sorted;
}

std::string loss_text(Loss loss) {
  std::string text = marker_name({.kind = FrameKind::accounted, .loss = loss}, "");
  return text.empty() ? text : text.substr(1, text.size() - 2);
}

std::string_view base_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "shop, libc.so.6", at most three of them.
std::string some_names(const std::vector<const ModuleNaming*>& modules) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < modules.size() && i < kShown; ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", base_name_of(modules[i]->path));
  }
  return modules.size() > kShown ? text + ", …" : text;
}

// "lines in 2 modules (shop, libc.so.6), symbols in 3 (…), no names in 1 (libfoo.so)"
std::string naming_line(const std::vector<ModuleNaming>& modules) {
  std::string text;
  const auto add = [&](ModuleNaming::Level level, std::string_view what) {
    std::vector<const ModuleNaming*> of_level;
    for (const ModuleNaming& module : modules) {
      if (module.level == level) of_level.push_back(&module);
    }
    if (of_level.empty()) return;
    text +=
        fmt::format("{}{} in {} ({})", text.empty() ? "" : "; ", what, of_level.size(), some_names(of_level));
  };
  add(ModuleNaming::Level::lines, "lines");
  add(ModuleNaming::Level::symbols, "only symbols");
  add(ModuleNaming::Level::none, "no names");
  return text;
}

// "4,018 samples, 3 lost (12.1 MiB)"; empty when none were taken.
std::string allocation_line(const Summary& summary) {
  const HeapCounters& heap = summary.collector.heap;
  if (summary.allocations + heap.samples + heap.refused + heap.limited == 0) return {};
  const auto mebibytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string text =
      fmt::format("{} samples, {} lost", with_thousands(summary.allocations), with_thousands(heap.lost));
  if (heap.lost > 0) text += fmt::format(" ({:.1f} MiB: ring full)", mebibytes(heap.lost_bytes));
  if (heap.untracked > 0)
    text += fmt::format(", {} live blocks not kept track of ({:.1f} MiB)", with_thousands(heap.untracked),
                        mebibytes(heap.untracked_bytes));
  if (heap.nested > 0) text += fmt::format(", {} in signal handlers left out", with_thousands(heap.nested));
  if (heap.refused > 0) text += fmt::format(", {} processes beyond the limit of 256 left out", heap.refused);
  if (heap.limited > 0)
    text += fmt::format(", {} processes with less than 1 GiB of address space left alone", heap.limited);
  return text;
}

// ", 12 lost (ring full), …": of what threads told of themselves.
std::string lost_contexts(const Summary& summary) {
  std::string text;
  if (summary.collector.lost_contexts > 0)
    text += fmt::format(", {} lost: their ring was full", with_thousands(summary.collector.lost_contexts));
  if (summary.contexts_over_budget > 0)
    text +=
        fmt::format(", {} left out: too many different ones", with_thousands(summary.contexts_over_budget));
  return text;
}

}  // namespace

std::string with_thousands(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

void count_stop(Summary& summary, StopReason reason, const CodeFile* file) {
  constexpr std::size_t kMaxPlaces =
      1024;  // a host for months; beyond, the reason is counted without its file
  std::string place = file != nullptr ? file->base_name() : "";
  const bool has_room = summary.stopped.size() < kMaxPlaces || summary.stopped.contains({reason, place});
  summary.stopped[{reason, has_room ? std::move(place) : ""}]++;
}

OwnUsage read_own_usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return {time(usage.ru_utime) + time(usage.ru_stime), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

namespace {

// "replaced 3 times: 2 crashed, 1 as scheduled"; empty when it never was.
std::string replacements(const Summary& summary) {
  constexpr std::array<std::string_view, kWorkerEnds> kNames{"", "as scheduled", "for its memory", "crashed",
                                                             "hung"};
  std::uint32_t all = 0;
  std::string parts;
  for (std::size_t end = 1; end < kWorkerEnds; ++end) {
    const std::uint32_t count = summary.worker_ends[end];
    if (count == 0) continue;
    all += count;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, kNames[end]);
  }
  return all == 0 ? "" : fmt::format("replaced {} times: {}", all, parts);
}

std::string profiles(std::uint64_t count) {
  return with_thousands(count) + (count == 1 ? " profile" : " profiles");
}

}  // namespace

// What did not arrive, or not yet.
std::string undelivered(const Summary& summary) {
  std::vector<std::string> parts;
  if (summary.delivery.waiting > 0)
    parts.push_back(fmt::format("{} wait on the disk", summary.delivery.waiting));
  if (summary.delivery.dropped > 0)
    parts.push_back(fmt::format("{} had to be dropped from there", summary.delivery.dropped));
  if (summary.dropped > 0)
    parts.push_back(fmt::format("{} were dropped because the destination was too slow", summary.dropped));
  if (summary.failed > 0) parts.push_back(fmt::format("{} failed", summary.failed));
  return parts.empty() ? "" : fmt::format("of the profiles, {}", fmt::join(parts, ", "));
}

std::vector<std::string> self_report(const Summary& summary) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("profiler: {} of CPU, {:.1f} MiB", seconds(summary.own.cpu.count()),
                              static_cast<double>(summary.own.memory_bytes) / (1 << 20)));
  if (summary.exact_cpu) lines.push_back(fmt::format("target: {} of CPU", seconds(*summary.exact_cpu)));
  if (summary.slow_down > 1)
    lines.push_back(fmt::format("sampling slowed down {} times to stay within --max-cpu", summary.slow_down));
  if (const std::string text = allocation_line(summary); !text.empty())
    lines.push_back("allocations: " + text);
  if (const std::string text = lost_contexts(summary); !text.empty())
    lines.push_back(fmt::format("traces: {} samples{}", with_thousands(summary.contexts), text));
  if (const std::string text = replacements(summary); !text.empty()) lines.push_back("worker: " + text);
  if (const std::string text = undelivered(summary); !text.empty()) lines.push_back("export: " + text);
  return lines;
}

namespace {

// The kernel counts records, and not all of them are samples; where the exact time is known, so is what they
// stood for.
std::uint64_t lost_samples(const Summary& summary) {
  const std::uint64_t records = summary.collector.lost_records;
  if (!summary.exact_cpu || summary.sampled_cpu <= 0) return records;
  const auto lost = summary.losses.find(Loss::lost);
  if (lost == summary.losses.end()) return 0;
  const double period = static_cast<double>(summary.sampled_cpu) / static_cast<double>(summary.stacks);
  return std::min(records,
                  static_cast<std::uint64_t>(std::llround(static_cast<double>(lost->second) / period)));
}

}  // namespace

std::string closing_line(const Summary& summary) {
  auto reasons = stop_reasons(summary);
  std::uint64_t truncated = 0;
  for (const auto& [reason, count] : reasons) truncated += count;
  std::string line = fmt::format("{} samples, {} lost, {} stacks truncated", with_thousands(summary.stacks),
                                 with_thousands(lost_samples(summary)), with_thousands(truncated));
  if (truncated == 0) return line;
  return line +
         fmt::format(" ({:.1f} %: {}{})",
                     percent(static_cast<std::int64_t>(truncated), static_cast<std::int64_t>(summary.stacks)),
                     reasons.front().first, reasons.size() > 1 ? ", …" : "");
}

std::string end_line(const Summary& summary) {
  std::string line = fmt::format("the end, after {:.1f} s: {}; {} for {}",
                                 std::chrono::duration<double>(summary.duration).count(),
                                 closing_line(summary), profiles(summary.sent), summary.output);
  if (const std::string text = undelivered(summary); !text.empty()) line += "; " + text;
  if (summary.exported.first_error) line += ": " + summary.exported.first_error->message;
  if (const std::string text = replacements(summary); !text.empty()) line += "; worker " + text;
  if (summary.exact_cpu) line += fmt::format("; target {} of CPU", seconds(*summary.exact_cpu));
  return line + fmt::format("; ddprof {} of CPU, {:.1f} MiB", seconds(summary.own.cpu.count()),
                            static_cast<double>(summary.own.memory_bytes) / (1 << 20));
}

std::string render_summary(const Summary& summary) {
  std::string text = "ddprof: " + closing_line(summary) + "\n";
  auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  if (summary.has_pauses)
    add("looked at",
        fmt::format("{} of {}", seconds(summary.observed.count()), seconds(summary.duration.count())));
  const Nanoseconds observed = summary.has_pauses ? summary.observed : summary.duration;
  auto reasons = stop_reasons(summary);
  if (reasons.size() > 1) {
    for (const auto& [reason, count] : reasons)
      add("truncated", fmt::format("{}: {}", with_thousands(count), reason));
  }
  if (summary.exact_cpu) {
    std::int64_t total = *summary.exact_cpu;
    // Samples that stand for more than was charged were scaled down in the profile.
    std::int64_t sampled = total;
    for (const auto& [loss, value] : summary.losses) sampled -= value;
    sampled = std::min(sampled, summary.sampled_cpu);
    add("target", fmt::format("{} of CPU in {}, {:.1f} % of it sampled", seconds(total),
                              seconds(observed.count()), percent(sampled, total)));
    for (const auto& [loss, value] : summary.losses) {
      if (value * 1000 < total) continue;  // below 0.1 %: in the profile, not worth a line
      add("", fmt::format("{} ({:.1f} %) {}", seconds(value), percent(value, total), loss_text(loss)));
    }
  } else {
    add("target",
        fmt::format("{} of CPU sampled in {}", seconds(summary.sampled_cpu), seconds(observed.count())));
  }
  if (summary.stacks_from_code * 100 >= std::max<std::uint64_t>(summary.stacks, 1))
    add("unwinding", fmt::format("{} stacks through code without unwind information, by its instructions",
                                 with_thousands(summary.stacks_from_code)));
  if (summary.unread_code > 0)
    add("generated", fmt::format("code was not read from memory {} times: too much of a process in a second",
                                 with_thousands(summary.unread_code)));
  if (const std::uint64_t others = summary.collector.lost_records - lost_samples(summary); others > 0)
    add("records",
        fmt::format("{} lost that tell of mappings and tasks: ring buffer full", with_thousands(others)));
  if (summary.collector.throttled > 0)
    add("throttled", fmt::format("{} times by the kernel", summary.collector.throttled));
  if (summary.collector.filtered_samples > 0)
    add("filtered",
        fmt::format("{} samples of other processes", with_thousands(summary.collector.filtered_samples)));
  if (summary.excluded.processes > 0)
    add("filtered", fmt::format("{} samples ({} of CPU) of {} processes, by --include and --exclude",
                                with_thousands(summary.excluded.samples), seconds(summary.excluded.cpu),
                                with_thousands(summary.excluded.processes)));
  if (summary.over_limit.samples > 0)
    add("too many", fmt::format("{} samples ({} of CPU) of processes beyond --maximum-pids have no stacks",
                                with_thousands(summary.over_limit.samples), seconds(summary.over_limit.cpu)));
  if (const std::string heap = allocation_line(summary); !heap.empty()) add("heap", heap);
  if (summary.contexts > 0)
    add("traces", fmt::format("{} samples with what their thread was doing{}",
                              with_thousands(summary.contexts), lost_contexts(summary)));
  if (summary.collector.malformed_records > 0)
    add("malformed", fmt::format("{} records", summary.collector.malformed_records));
  add("engine",
      summary.engine + (summary.kernel_need.empty()
                            ? ""
                            : fmt::format("; user frames only: kernel frames need {}", summary.kernel_need)));
  if (const std::string names = naming_line(summary.exported.modules); !names.empty()) add("names", names);
  for (const std::string& notice : summary.notices) add("notice", notice);
  for (const std::string& hint : summary.exported.hints) add("hint", hint);
  for (const ModuleNaming& module : summary.exported.modules) {
    if (!module.problem.empty() || module.unread > 0) add("notice", describe(module));
  }
  add("ddprof", fmt::format("{} of CPU, {:.1f} MiB", seconds(summary.own.cpu.count()),
                            static_cast<double>(summary.own.memory_bytes) / (1 << 20)));
  if (const std::string replaced = replacements(summary); !replaced.empty()) add("worker", replaced);
  if (summary.slow_down > 1)
    add("slowed", fmt::format("one of {} samples is taken, to stay within --max-cpu", summary.slow_down));
  if (summary.dropped > 0)
    add("dropped", fmt::format("{}: the destination was too slow", profiles(summary.dropped)));
  if (summary.delivery.waiting > 0)
    add("waiting", fmt::format("{}, on the disk until they can be sent", profiles(summary.delivery.waiting)));
  if (summary.delivery.dropped > 0)
    add("dropped", fmt::format("{} that had waited: no room, too old, or refused in the end",
                               profiles(summary.delivery.dropped)));
  if (summary.exported.first_error) {
    add("failed", fmt::format("{}: {}", profiles(summary.failed), summary.exported.first_error->message));
    if (!summary.exported.first_error->hint.empty()) add("", "try: " + summary.exported.first_error->hint);
  }
  if (summary.sent > 0) add("profile", summary.output);
  return text;
}

}  // namespace ddprof
