#include "collect/perf/event_plan.hpp"

#include <algorithm>
#include <cerrno>

namespace ddprof {

namespace {

AttrRequest request_for(const EventSpec& spec, const EventPlan& plan, const PerfOptions& options) {
  return {.features = plan.features,
          .config = spec.config,
          .stack_bytes = spec.stack_sample_size != 0 ? spec.stack_sample_size : options.stack_bytes,
          .kernel = plan.kernel,
          .has_children = plan.has_children};
}

// A refusal to sample ourselves is reported as one of what is wanted: a user who follows the hint for less
// meets the next refusal.
Error explain_for(const Target& target, const OpenFailure& failure) {
  const bool is_refused = failure.error_number == EACCES || failure.error_number == EPERM;
  if (!is_refused || target.is_about_to_exec()) return explain(failure);
  const std::int32_t task = target.is_host() ? kAllTasks : to_int(target.root());
  return explain(gather_failure(failure.error_number, failure.what, task, failure.wants_kernel));
}

// Opens the event on the caller, giving up newer attributes until the kernel understands it.
Result<void> probe_features(const EventSpec& spec, AttrRequest request, const Target& target,
                            EventPlan& plan) {
  request.side_band = true;
  while (true) {
    request.features = plan.features;
    auto opened = attempt_perf_event(task_sampling_attr(spec, request), kSelf, kAnyCpu, spec.name);
    if (!opened.failure) return {};
    auto fewer = without_newest(plan.features);
    if (obstacle_of(*opened.failure) != PerfObstacle::unknown_attribute || !fewer)
      return explain_for(target, *opened.failure);
    plan.features = *fewer;
  }
}

bool can_open(const perf_event_attr& attr, std::int32_t task, std::int32_t cpu) {
  return open_perf_event(attr, task, cpu, "probe").ok();
}

void probe_permissions(const EventSpec& probe, const PerfOptions& options, EventPlan& plan) {
  AttrRequest request = request_for(probe, plan, options);
  request.kernel = true;
  plan.kernel = can_open(task_sampling_attr(probe, request), kSelf, kAnyCpu);
  if (!plan.kernel)
    plan.notices.push_back(fmt::format("time in the kernel is counted but not sampled: that needs {}",
                                       kernel_frames_need(own_privileges())));
  constexpr std::int32_t kFirstCpu = 0;
  plan.per_cpu = can_open(cpu_sampling_attr(probe, request_for(probe, plan, options)), kAllTasks, kFirstCpu);
}

Result<void> check_children(const EventSpec& probe, const PerfOptions& options, const EventPlan& plan) {
  if (plan.has_children ||
      can_open(task_sampling_attr(probe, request_for(probe, plan, options)), kSelf, kAnyCpu))
    return {};
  return make_error(ErrorCode::unsupported,
                    "--no-children: this kernel cannot tell children from threads; Linux 5.13 can");
}

Result<PlannedEvent> plan_event(std::uint32_t index, EventSpec spec, const PerfOptions& options,
                                const Target& target, EventPlan& plan) {
  if (spec.kind == EventSpec::Kind::tracepoint)
    spec.config = TRY(find_tracepoint_id(spec.tracepoint_group, spec.tracepoint_name));
  AttrRequest request = request_for(spec, plan, options);
  // Tracepoints fire inside the kernel: without it they would stay silent, so let the kernel say why not.
  if (spec.kind == EventSpec::Kind::tracepoint) request.kernel = true;
  request.side_band = plan.events.empty();
  request.enable_on_exec = target.is_about_to_exec();
  auto probed = probe_features(spec, request, target, plan);
  if (!probed.ok()) return std::move(probed).error();
  request.features = plan.features;

  PlannedEvent event;
  event.index = index;
  event.task_attr = task_sampling_attr(spec, request);
  event.totals_attr = task_totals_attr(spec, request);
  event.ticks_attr = task_ticks_attr(spec, request);
  event.cpu_attr = cpu_sampling_attr(spec, request);
  event.counting_attr = counting_attr(spec, request);
  event.layout = RecordLayout::of(event.task_attr);
  event.spec = std::move(spec);
  return event;
}

}  // namespace

Result<EventPlan> make_event_plan(const PerfOptions& options, const Target& target) {
  EventPlan plan;
  auto is_ours = [](const EventSpec& spec) { return spec.kind != EventSpec::Kind::allocation; };
  EventSpec side_band = side_band_spec();
  {
    auto probed = probe_features(side_band, request_for(side_band, plan, options), target, plan);
    if (!probed.ok()) return std::move(probed).error();
  }
  probe_permissions(side_band, options, plan);
  plan.has_children = target.has_children;
  TRY(check_children(side_band, options, plan));

  if (options.has_pauses || std::none_of(options.events.begin(), options.events.end(), is_ours))
    plan.events.push_back(TRY(plan_event(PlannedEvent::kSideBandOnly, side_band, options, target, plan)));
  for (std::uint32_t index = 0; index < options.events.size(); ++index) {
    if (!is_ours(options.events[index])) continue;
    plan.events.push_back(TRY(plan_event(index, options.events[index], options, target, plan)));
  }
  return plan;
}

}  // namespace ddprof
