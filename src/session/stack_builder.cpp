#include "session/stack_builder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace ddprof {

namespace {

// How many threads with deep stacks are remembered; each costs up to 200 KB.
constexpr std::size_t kMaxDeepThreads = 128;

// With -g the profiler sees itself. Each of its own samples makes it work, which makes samples: F samples a
// second of its CPU time, each of which costs c seconds, multiply its work by 1 / (1 - F c), which is
// harmless at 99 Hz (c is some 50 microseconds) and without end at 20,000 Hz. So only so many of them are
// unwound in a second: half a percent of a core.
constexpr std::uint32_t kMaxOwnStacks = 100;

// Inside of a system call, without a byte of stack: exec has given up the memory of the old program, whose
// registers are still there. On x86 rax has this value until the call returns.
bool is_being_replaced(const SampleEvent& sample) {
  constexpr std::size_t kAccumulator = 0;
  const auto result = static_cast<std::int32_t>(sample.registers.by_dwarf_number[kAccumulator]);
  return !sample.kernel_chain.empty() && sample.stack_requested != 0 && sample.stack.empty() &&
         result == -ENOSYS;
}

}  // namespace

// Only threads that have outgrown the copy once pay for being remembered.
OuterFrames* StackBuilder::outer_frames(const SampleEvent& sample, bool is_truncated) {
  auto known = outer_.find(to_int(sample.tid));
  if (known != outer_.end()) return &known->second;
  if (!is_truncated) return nullptr;
  if (outer_.size() >= kMaxDeepThreads) outer_.erase(outer_.begin());
  return &outer_[to_int(sample.tid)];
}

void StackBuilder::unwind(const SampleEvent& sample, const Process& process) {
  StackCopy copy{.start = {sample.registers.sp},
                 .bytes = sample.stack,
                 .is_truncated = sample.stack.size() >= sample.stack_requested,
                 .taken_at = sample.time,
                 .is_32_bit = sample.is_32_bit};
  OuterFrames* outer = outer_frames(sample, copy.is_truncated);
  unwinder_.unwind(sample.registers, copy, code_.modules(process), outer, &live_, stack_);
  // A handler on a stack of its own: the copy holds that one, the frames that it interrupted are elsewhere.
  // Or the copy ended early, at a page that was never touched.
  bool ends_outside = stack_.reason == StopReason::truncated_copy || stack_.reason == StopReason::bad_memory;
  if (outer == nullptr && ends_outside) {
    unwinder_.unwind(sample.registers, copy, code_.modules(process), outer_frames(sample, true), &live_,
                     stack_);
  }
}

bool StackBuilder::is_own_beyond_budget(const SampleEvent& sample) {
  static const Pid kOwn{::getpid()};
  if (sample.pid != kOwn) return false;
  const auto second = std::chrono::floor<std::chrono::seconds>(sample.time);
  if (second != own_second_) own_stacks_ = 0;
  own_second_ = second;
  return ++own_stacks_ > kMaxOwnStacks;
}

void StackBuilder::take_user_chain(const SampleEvent& sample, const Process& process) {
  const ModuleMap& modules = code_.modules(process);
  stack_.clear();
  for (const std::uint64_t address : sample.user_chain) {
    if (stack_.frames.size() == Unwinder::kMaxFrames) {
      stack_.reason = StopReason::depth_limit;
      return;
    }
    const std::uint64_t pc = stack_.frames.empty() ? address : address - 1;  // into the call
    const Module* module = modules.find(Address{pc});
    if (module == nullptr) stack_.reason = StopReason::unknown_code;
    const bool has_file = module != nullptr && module->file != FileId::none;
    stack_.frames.push_back(
        {.file = has_file ? module->file : FileId::none, .address = has_file ? module->elf_address(pc) : pc});
  }
}

// The innermost frames that are all of one file.
void StackBuilder::leave_library() {
  if (stack_.frames.empty()) return;
  const FileId library = stack_.frames.front().file;
  const auto caller = std::find_if(stack_.frames.begin(), stack_.frames.end(),
                                   [&](const Frame& frame) { return frame.file != library; });
  if (caller != stack_.frames.end()) stack_.frames.erase(stack_.frames.begin(), caller);
}

void StackBuilder::build_user_stack(const SampleEvent& sample) {
  Process& process = processes_.find_or_read(sample.pid);
  if (!sample.user_chain.empty()) {
    take_user_chain(sample, process);
    if (stack_.reason == StopReason::unknown_code && processes_.backfill(process))
      take_user_chain(sample, process);
    frames_.insert(frames_.end(), stack_.frames.begin(), stack_.frames.end());
    if (stack_.reason == StopReason::unknown_code || stack_.reason == StopReason::complete)
      stack_.reason = sample.user_chain_end;  // which the engine has found
    return;
  }
  live_.select(sample.pid, sample.time);
  unwind(sample, process);
  bool is_unexplained =
      stack_.reason == StopReason::unknown_code || stack_.reason == StopReason::no_unwind_info;
  if (is_unexplained && processes_.backfill(process)) unwind(sample, process);
  if (stack_.reason != StopReason::complete && is_being_replaced(sample)) {
    if (stack_.reason == StopReason::unknown_code) stack_.frames.clear();  // of the program that is gone
    stack_.reason = StopReason::complete;
  }
  if (sample.starts_in_library) leave_library();
  frames_.insert(frames_.end(), stack_.frames.begin(), stack_.frames.end());
}

std::span<const std::uint64_t> StackBuilder::addresses(const SampleEvent& sample) {
  if (!sample.user_chain.empty()) return sample.user_chain;
  addresses_.clear();
  const auto modules = code_.modules(processes_.find_or_read(sample.pid)).modules();
  for (const Frame& frame : stack_.frames) {
    const auto module = std::find_if(modules.begin(), modules.end(), [&](const Module& one) {
      return one.file == frame.file && one.contains({frame.address + one.bias});
    });
    const std::uint64_t bias = frame.file != FileId::none && module != modules.end() ? module->bias : 0;
    // Of callers, return addresses.
    addresses_.push_back(frame.address + bias + (addresses_.empty() ? 0 : 1));
  }
  return addresses_;
}

BuiltStack StackBuilder::build_marker(Loss loss) {
  frames_.assign(1, {.kind = FrameKind::accounted, .loss = loss});
  return {.frames = frames_};
}

BuiltStack StackBuilder::build(const SampleEvent& sample) {
  frames_.clear();
  for (std::uint64_t address : sample.kernel_chain) {
    frames_.push_back({.kind = FrameKind::kernel, .address = address});
  }
  if (!sample.has_registers && sample.user_chain.empty()) {
    // Kernel threads, and tasks in exec or exit, have no user stack: what the kernel told is all there is.
    stack_.clear();
    stack_.reason = sample.kernel_chain.empty() ? StopReason::no_registers : StopReason::complete;
  } else if (is_own_beyond_budget(sample)) {
    stack_.clear();
    stack_.reason = StopReason::own_process;
  } else {
    build_user_stack(sample);
  }
  if (stack_.reason == StopReason::no_unwind_info && code_.is_unread(stack_.stop_file))
    stack_.reason = StopReason::unread_unwind_info;
  if (stack_.reason != StopReason::complete) {
    frames_.push_back({.kind = FrameKind::stopped, .reason = stack_.reason, .file = stack_.stop_file});
  }
  StopReason reason = stack_.reason;
  if (stack_.inner_frames > 0) {
    const auto gap = static_cast<std::ptrdiff_t>(sample.kernel_chain.size() + stack_.inner_frames);
    frames_.insert(frames_.begin() + gap, {.kind = FrameKind::stopped, .reason = StopReason::depth_limit});
    if (reason == StopReason::complete) reason = StopReason::depth_limit;
  }
  bool is_deep = stack_.outer_frames > 0 || stack_.is_late || stack_.reason == StopReason::truncated_copy;
  return {frames_, reason, stack_.stop_file, is_deep, stack_.frames_from_code > 0};
}

}  // namespace ddprof
