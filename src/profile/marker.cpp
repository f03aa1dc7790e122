#include "profile/marker.hpp"

#include <fmt/format.h>

namespace ddprof {

namespace {

std::string in_module(std::string_view what, std::string_view module) {
  if (module.empty()) return fmt::format("[truncated: {}]", what);
  return fmt::format("[truncated: {} in {}]", what, module);
}

std::string depth_marker(std::uint64_t frames) {
  if (frames == 0) return "[truncated: too many frames]";
  return fmt::format("[truncated: more than {} frames]", frames);
}

std::string stop_marker(const Frame& frame, std::string_view module) {
  switch (frame.reason) {
    case StopReason::complete:
      return {};
    case StopReason::truncated_copy:
      return "[truncated: stack deeper than the copy]";
    case StopReason::no_unwind_info:
      return in_module("no unwind info", module);
    case StopReason::unsupported_rule:
      return in_module("unsupported unwind rule", module);
    case StopReason::bad_memory:
      return in_module("bad memory", module);
    case StopReason::unknown_code:
      return "[truncated: unknown code]";
    case StopReason::depth_limit:
      return depth_marker(frame.address);
    case StopReason::no_registers:
      return "[truncated: no registers]";
    case StopReason::unread_unwind_info:
      return in_module("unwind info was not read", module);
    case StopReason::own_process:
      return "[truncated: too many samples of ddprof itself]";
  }
  return {};
}

std::string loss_marker(Loss loss) {
  switch (loss) {
    case Loss::none:
      return {};
    case Loss::unsampled:
      return "[unsampled: shorter than a sampling period]";
    case Loss::lost:
      return "[lost: ring buffer full]";
    case Loss::kernel:
      return "[kernel: not permitted to sample]";
    case Loss::throttled:
      return "[throttled by the kernel]";
    case Loss::too_many_stacks:
      return "[too many distinct stacks]";
    case Loss::too_many_processes:
      return "[too many processes: --maximum-pids]";
    case Loss::worker:
      return "[lost: a worker of the profiler ended]";
    case Loss::other_user:
      return "[unsampled: became another user by set-user-ID exec]";
    case Loss::untracked:
      return "[too many live blocks]";
  }
  return {};
}

}  // namespace

std::string marker_name(const Frame& frame, std::string_view module) {
  switch (frame.kind) {
    case FrameKind::user:
    case FrameKind::kernel:
      return {};
    case FrameKind::stopped:
      return stop_marker(frame, module);
    case FrameKind::accounted:
      return loss_marker(frame.loss);
  }
  return {};
}

bool is_marker_name(std::string_view name) {
  if (!name.ends_with(']')) return false;
  for (std::string_view start : {"[truncated: ", "[unsampled", "[lost", "[kernel: ", "[throttled",
                                 "[too many distinct ", "[too many processes"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

}  // namespace ddprof
