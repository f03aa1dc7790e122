#include "collect/event_table.hpp"

#include <linux/perf_event.h>

#include <array>
#include <string>

// Default rates. Frequent events are sampled at a frequency: the kernel adapts the period, and each sample
// carries the number of events that it stands for, so totals stay right at a bounded cost. Rare ones (major
// faults, migrations, alignment and emulation faults) are all sampled, because each is news. 99 Hz rather
// than 100 avoids walking in step with timers of the target.

namespace ddprof {

namespace {

using Kind = EventSpec::Kind;

constexpr std::array<KnownEvent, 20> kEvents = {{
    {"sCPU", "task-clock", Kind::software, PERF_COUNT_SW_TASK_CLOCK, "cpu", "nanoseconds", 99, 0, "CPU time"},
    {"sALLOC", "", Kind::allocation, 0, "alloc_space", "bytes", 0, 524288, "allocated bytes"},
    {"sPF", "page-faults", Kind::software, PERF_COUNT_SW_PAGE_FAULTS, "page-faults", "count", 99, 0,
     "page faults"},
    {"sPFMAJ", "major-faults", Kind::software, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults", "count", 0, 1,
     "page faults that read from disk"},
    {"sPFMIN", "minor-faults", Kind::software, PERF_COUNT_SW_PAGE_FAULTS_MIN, "minor-faults", "count", 99, 0,
     "page faults without disk"},
    {"sCS", "context-switches", Kind::software, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches", "count",
     99, 0, "switches to another task"},
    {"sMig", "cpu-migrations", Kind::software, PERF_COUNT_SW_CPU_MIGRATIONS, "cpu-migrations", "count", 0, 1,
     "moves to another CPU"},
    {"sALGN", "alignment-faults", Kind::software, PERF_COUNT_SW_ALIGNMENT_FAULTS, "alignment-faults", "count",
     0, 1, "unaligned accesses fixed up"},
    {"sEMU", "emulation-faults", Kind::software, PERF_COUNT_SW_EMULATION_FAULTS, "emulation-faults", "count",
     0, 1, "instructions emulated"},
    {"sDUM", "dummy", Kind::software, PERF_COUNT_SW_DUMMY, "dummy", "count", 0, 1, "nothing; for tests"},
    {"hCPU", "cycles", Kind::hardware, PERF_COUNT_HW_CPU_CYCLES, "cpu-cycles", "count", 99, 0, "CPU cycles"},
    {"hREF", "ref-cycles", Kind::hardware, PERF_COUNT_HW_REF_CPU_CYCLES, "ref-cycles", "count", 99, 0,
     "cycles at constant rate"},
    {"hINST", "instructions", Kind::hardware, PERF_COUNT_HW_INSTRUCTIONS, "instructions", "count", 99, 0,
     "instructions retired"},
    {"hCREF", "cache-references", Kind::hardware, PERF_COUNT_HW_CACHE_REFERENCES, "cache-references", "count",
     99, 0, "last-level cache accesses"},
    {"hCMISS", "cache-misses", Kind::hardware, PERF_COUNT_HW_CACHE_MISSES, "cache-misses", "count", 99, 0,
     "last-level cache misses"},
    {"hBRANCH", "branches", Kind::hardware, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", "count", 99, 0,
     "branch instructions"},
    {"hBMISS", "branch-misses", Kind::hardware, PERF_COUNT_HW_BRANCH_MISSES, "branch-misses", "count", 99, 0,
     "mispredicted branches"},
    {"hBUS", "bus-cycles", Kind::hardware, PERF_COUNT_HW_BUS_CYCLES, "bus-cycles", "count", 99, 0,
     "bus cycles"},
    {"hBSTF", "stalled-cycles-frontend", Kind::hardware, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
     "stalled-cycles-frontend", "count", 99, 0, "cycles stalled on fetch"},
    {"hBSTB", "stalled-cycles-backend", Kind::hardware, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
     "stalled-cycles-backend", "count", 99, 0, "cycles stalled on execution"},
}};

std::string rate_of(const KnownEvent& event) {
  if (event.frequency != 0) return fmt::format("{} Hz", event.frequency);
  if (event.period == 1) return "every one";
  return fmt::format("every {} {}", event.period, event.unit);
}

}  // namespace

std::span<const KnownEvent> known_events() { return kEvents; }

const KnownEvent* find_known_event(std::string_view name) {
  // Per task, perf's two software clocks tick on the same nanoseconds: one event serves both names.
  if (name == "cpu-clock") name = "task-clock";
  for (const KnownEvent& event : kEvents) {
    if (name == event.name || (!event.alias.empty() && name == event.alias)) return &event;
  }
  return nullptr;
}

std::string events_help() {
  std::string text =
      "Events: NAME key=value ..., separated by spaces or commas; ';' between events.\n"
      "\n"
      "  ddprof -e 'sCPU f=199' ./server               CPU time, 199 samples a second\n"
      "  ddprof -e 'sCPU; hCMISS p=100000' ./server    two columns in one profile\n"
      "  ddprof -e sched:sched_switch -p 1234          a tracepoint, every occurrence\n"
      "  ddprof -e 'syscalls:sys_enter_write o=32 z=8 l=bytes' ./server\n"
      "                                                bytes written, from the raw record\n"
      "\n"
      "Names (either spelling):\n";
  for (const KnownEvent& event : kEvents) {
    text += fmt::format("  {:<8} {:<24} {:<19} {}\n", event.name, event.alias, rate_of(event), event.meaning);
  }
  text +=
      "  group:event                       every one           a tracepoint, also g=group e=event\n"
      "\n"
      "Keys:\n"
      "  f frequency freq           samples a second, 1 to 100000\n"
      "  p period per               one sample every so many events (for sCPU: nanoseconds)\n"
      "  l label                    name of the column in the profile\n"
      "  s scale value_scale        multiply each value by this\n"
      "  st stack_sample_size stcksz\n"
      "                             bytes of stack to copy, multiple of 8 up to 65528\n"
      "  m mode                     s sum, l live, a or * both (live: allocations only)\n"
      "  e event ev eventname, g group gr groupname, i id\n"
      "                             the tracepoint\n"
      "  n arg_num argno            the value is the function's argument n, 1 to 6\n"
      "  r register regno           the value is this register, by perf's number\n"
      "  o raw_offset rawoff, z raw_size rawsz\n"
      "                             the value is in the raw record: offset, and size 1, 2, 4 or 8\n";
  return text;
}

}  // namespace ddprof
