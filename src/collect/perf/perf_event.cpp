#include "collect/perf/perf_event.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>

#include "collect/perf/sample_event.hpp"

namespace ddprof {

namespace {

// The kernel wants multiples of 8 and refuses what cannot fit a record (its size field has 16 bits).
constexpr std::uint32_t kMaxStackBytes = 65528;

// The fields at fixed places that every record of every event shares; what differs per event comes behind
// them.
constexpr std::uint64_t kCommonSampleType =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

perf_event_attr base_attr(const AttrFeatures& features) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.disabled = 1;
  attr.sample_id_all = 1;
  attr.watermark = 1;
  attr.sample_type = kCommonSampleType;
  if (features.clockid) {
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
  }
  return attr;
}

void set_type(perf_event_attr& attr, const EventSpec& spec, std::uint64_t config) {
  switch (spec.kind) {
    case EventSpec::Kind::hardware:
      attr.type = PERF_TYPE_HARDWARE;
      break;
    case EventSpec::Kind::tracepoint:
      attr.type = PERF_TYPE_TRACEPOINT;
      break;
    case EventSpec::Kind::software:
    case EventSpec::Kind::allocation:
      attr.type = PERF_TYPE_SOFTWARE;
      break;
  }
  attr.config = config;
  // Counters are shared out over time when there are more events than counters: totals must be scaled.
  if (spec.kind == EventSpec::Kind::hardware)
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

void set_interval(perf_event_attr& attr, const EventSpec& spec) {
  if (spec.frequency != 0 && !spec.is_clock) {
    attr.freq = 1;
    attr.sample_freq = spec.frequency;
  } else if (spec.frequency != 0) {
    // What the kernel does itself with the frequency of a clock, minus its check against the maximum sample
    // rate.
    attr.sample_period = std::max<std::uint64_t>(1'000'000'000 / spec.frequency, 1);
  } else {
    attr.sample_period = spec.period;
  }
}

void set_side_band(perf_event_attr& attr, const AttrFeatures& features) {
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.task = 1;
  attr.comm_exec = features.comm_exec;
  attr.build_id = features.build_id;
}

perf_event_attr sampling_attr(const EventSpec& spec, const AttrRequest& request) {
  perf_event_attr attr = base_attr(request.features);
  set_type(attr, spec, request.config);
  set_interval(attr, spec);
  attr.sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER;
  attr.sample_regs_user = native_perf_registers().mask;
  attr.sample_stack_user = std::min(request.stack_bytes, kMaxStackBytes) & ~7U;
  if (attr.sample_stack_user != 0) attr.sample_type |= PERF_SAMPLE_STACK_USER;
  if (request.kernel) {
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_user = 1;
  } else {
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
  }
  if (spec.value_source == EventSpec::ValueSource::raw_field) attr.sample_type |= PERF_SAMPLE_RAW;
  if (request.side_band) set_side_band(attr, request.features);
  return attr;
}

}  // namespace

std::optional<AttrFeatures> without_newest(AttrFeatures features) {
  for (bool AttrFeatures::*feature :
       {&AttrFeatures::build_id, &AttrFeatures::clockid, &AttrFeatures::comm_exec}) {
    if (!(features.*feature)) continue;
    features.*feature = false;
    return features;
  }
  return std::nullopt;
}

perf_event_attr task_sampling_attr(const EventSpec& spec, const AttrRequest& request) {
  perf_event_attr attr = sampling_attr(spec, request);
  attr.inherit = 1;
  attr.inherit_thread = !request.has_children;
  attr.enable_on_exec = request.enable_on_exec;
  return attr;
}

perf_event_attr task_totals_attr(const EventSpec& spec, const AttrRequest& request) {
  perf_event_attr attr = task_sampling_attr(spec, request);
  attr.sample_period = 0;
  attr.freq = 0;
  attr.inherit_stat = 1;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.build_id = 0;
  return attr;
}

perf_event_attr task_ticks_attr(const EventSpec& spec, const AttrRequest& request) {
  constexpr std::uint32_t kSmallStack = 8192;  // a ring holds few records, and most of them are left out
  AttrRequest small = request;
  small.stack_bytes = std::min(request.stack_bytes, kSmallStack);
  small.side_band = false;
  small.enable_on_exec = false;
  return task_sampling_attr(spec, small);
}

perf_event_attr cpu_sampling_attr(const EventSpec& spec, const AttrRequest& request) {
  perf_event_attr attr = sampling_attr(spec, request);
  // The clock of a task means nothing without a task.
  if (spec.is_clock) attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.exclude_idle = 1;
  return attr;
}

perf_event_attr counting_attr(const EventSpec& spec, const AttrRequest& request) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  set_type(attr, spec, request.config);
  attr.disabled = 1;
  attr.inherit = 1;
  attr.inherit_thread = !request.has_children;
  attr.enable_on_exec = request.enable_on_exec;
  if (!request.kernel) {
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
  }
  return attr;
}

perf_event_attr ring_attr(const AttrFeatures& features, std::uint32_t watermark_bytes) {
  perf_event_attr attr = base_attr(features);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.wakeup_watermark = watermark_bytes;
  return attr;
}

EventSpec side_band_spec() {
  EventSpec spec;
  spec.name = "side-band";
  spec.config = PERF_COUNT_SW_DUMMY;
  spec.period = 1;
  return spec;
}

Result<std::uint64_t> find_tracepoint_id(std::string_view group, std::string_view name,
                                         std::span<const std::filesystem::path> roots) {
  auto is_plain = [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.find('/') == std::string_view::npos;
  };
  if (!is_plain(group) || !is_plain(name))
    return make_error(ErrorCode::invalid_argument, "tracepoint {}:{}: not a name", group, name);
  bool is_forbidden = false;
  bool is_mounted = false;
  for (const auto& root : roots) {
    std::error_code error;
    is_mounted |= std::filesystem::exists(root / "events", error);
    is_forbidden |= error == std::errc::permission_denied;
    std::ifstream file(root / "events" / group / name / "id");
    std::uint64_t id = 0;
    if (file >> id) return id;
    is_forbidden |= errno == EACCES;
  }
  if (is_forbidden)
    return with_hint(
        make_error(ErrorCode::permission_denied, "tracepoint {}:{}: may not read tracefs", group, name),
        "run ddprof as root");
  if (!is_mounted)
    return with_hint(
        make_error(ErrorCode::not_found, "tracepoint {}:{}: tracefs is not mounted", group, name),
        "sudo mount -t tracefs tracefs /sys/kernel/tracing");
  return make_error(ErrorCode::not_found, "tracepoint {}:{}: this kernel has no such event", group, name);
}

Result<std::uint64_t> find_tracepoint_id(std::string_view group, std::string_view name) {
  static const std::array<std::filesystem::path, 2> kRoots = {"/sys/kernel/tracing",
                                                              "/sys/kernel/debug/tracing"};
  return find_tracepoint_id(group, name, kRoots);
}

PerfAttempt attempt_perf_event(const perf_event_attr& attr, std::int32_t task, std::int32_t cpu,
                               std::string_view what) {
  constexpr int kNoEventGroup = -1;
  const long fd = ::syscall(SYS_perf_event_open, &attr, task, cpu, kNoEventGroup, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return {.event = UniqueFd(static_cast<int>(fd)), .failure = std::nullopt};
  return {.event = {}, .failure = gather_failure(errno, what, task, attr.exclude_kernel == 0)};
}

Result<UniqueFd> open_perf_event(const perf_event_attr& attr, std::int32_t task, std::int32_t cpu,
                                 std::string_view what) {
  PerfAttempt attempt = attempt_perf_event(attr, task, cpu, what);
  if (attempt.failure) return explain(*attempt.failure);
  return std::move(attempt.event);
}

}  // namespace ddprof
