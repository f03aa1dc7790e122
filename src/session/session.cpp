#include "session/session.hpp"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

// A worker that is not heard of for so long after it said that it would be back has hung. Naming the last
// period takes longer than anything else.
constexpr Nanoseconds kPatience = 10s;
constexpr Nanoseconds kLastPatience = 60s;  // and the time for uploads

constexpr Nanoseconds kBetweenLooksAtBudgets = 1s;
constexpr Nanoseconds kBetweenShrinks = 30s;
constexpr Nanoseconds kBetweenSlowNotices = 10min;

}  // namespace

Session::Session(Collector& collector, Destination& destination, SessionOptions options)
    : collector_(collector),
      options_(std::move(options)),
      continuity_(options_.continuity != nullptr ? *options_.continuity : own_continuity_),
      stacks_(processes_, code_, Architecture::x86_64),
      contexts_(collector_.thread_contexts(), processes_, files_),
      inherited_(believed(continuity_.legacy(), monotonic_now(),
                          monotonic_now() + options_.period.value_or(std::chrono::seconds(0)))),
      finisher_(destination, guarded(options_.naming), continuity_, options_.exit_timeout),
      cpu_budget_(options_.max_cpu),
      idle_roots_(options_.target.is_about_to_exec() ? std::vector<Pid>() : options_.target.pids),
      cadence_(options_.period, options_.window) {
  // What the kernel charges goes on in the pauses.
  if (cadence_.has_pauses()) options_.charged_cpu = nullptr;
  for (const EventSpec& event : options_.events) {
    const std::string name(ProfileKind::name_of(event));
    if (std::any_of(kinds_.begin(), kinds_.end(), [&](const auto& kind) { return kind->name() == name; }))
      continue;
    kinds_.push_back(std::make_unique<ProfileKind>(name, options_, collector_, processes_));
    if (cpu_ == nullptr) cpu_ = kinds_.back()->account();
  }
  summary_.output = destination.describe();
  summary_.kernel_need = collector_.scope().kernel_need;
}

Summary Session::run(const std::atomic<bool>& stop) {
  begin();
  if (!options_.target.is_about_to_exec()) {
    for (const Pid pid : first_processes()) processes_.find_or_read(pid);
    idle_roots_.name(processes_);
  }

  std::uint64_t samples = 0;
  std::uint64_t others = 0;
  const EventHandler dispatch = [&](const CollectorEvent& event) {
    ++(std::holds_alternative<SampleEvent>(event) ? samples : others);
    std::visit([this](const auto& known) { handle(known); }, event);
  };
  while (!stop && !collector_.is_finished() && ending_ == WorkerEnd::none) {
    samples = others = 0;
    const auto wait = time_to_wait();
    continuity_.promise(monotonic_now() + wait + kPatience);
    const Nanoseconds cpu_before = thread_cpu_now();
    auto collected = collector_.collect(wait, dispatch);
    if (!collected) {
      options_.notices.push_back(collected.error().message);
      break;
    }
    summary_.collecting_cpu += thread_cpu_now() - cpu_before;
    pace_.note(samples, others);
    contexts_.look_around(monotonic_now());
    if (is_whole_host()) processes_.read_all_published(monotonic_now());
    if (RateControl* rate = collector_.rate_control(); rate != nullptr && has_deep_stacks_)
      rate->deliver_at_once();
    Nanoseconds now = monotonic_now();
    if (options_.duration && now - started_ >= *options_.duration) break;
    if (cpu_ != nullptr) cpu_->refresh_charge(now);
    if (auto kept = keep_cadence(now, dispatch); !kept) {
      options_.notices.push_back(kept.error().message);
      break;
    }
    keep_within_budgets(now);
    if (options_.on_progress && now >= next_progress_) {
      next_progress_ = now + 1s;
      update_summary();
      options_.on_progress(summary_);
    }
  }

  if (stop && options_.is_replaced && options_.is_replaced()) ending_ = WorkerEnd::scheduled;
  continuity_.promise(monotonic_now() + kLastPatience + options_.exit_timeout);
  finish(dispatch);
  finisher_.finish();
  continuity_.suspects.forget_unfinished();
  update_summary();
  summary_.ending = ending_;
  return std::move(summary_);
}

void Session::keep_within_budgets(Nanoseconds now) {
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooksAtBudgets;
  const std::uint32_t before = cpu_budget_.factor();
  if (collector_.rate_control() != nullptr) {
    if (auto factor = cpu_budget_.update(now, own_cpu_time())) slow_down(before, *factor, now);
  }
  const MemoryState memory = judge_memory(own_memory_bytes(), options_.max_memory);
  if (memory == MemoryState::fine) return;
  if (now >= next_shrink_) {
    next_shrink_ = now + kBetweenShrinks;
    code_.forget_all();
    stacks_.forget_all();
    finisher_.shrink();
    ::malloc_trim(0);
  } else if (memory == MemoryState::exceeded) {
    continuity_.suspects.blame_unfinished(now);
    ending_ = WorkerEnd::memory;
  }
}

// Told when it begins and when it is over, but not each time where it comes and goes.
void Session::slow_down(std::uint32_t before, std::uint32_t factor, Nanoseconds now) {
  collector_.rate_control()->slow_down(factor);
  if (cpu_ != nullptr) cpu_->slow_down(factor);
  if (!options_.say_notice) return;
  if (before == 1 && now >= next_slow_notice_) {
    next_slow_notice_ = now + kBetweenSlowNotices;
    is_slowness_told_ = true;
    options_.say_notice(fmt::format("--max-cpu {:.0f} is reached: one of {} samples is taken",
                                    options_.max_cpu * 100, factor));
  } else if (factor == 1 && std::exchange(is_slowness_told_, false)) {
    options_.say_notice("within --max-cpu again: every sample is taken");
  }
}

void Session::handle(const SampleEvent& sample) {
  const auto verdict = choice_.judge(sample, options_.events[sample.event].is_clock);
  if (verdict == ProcessChoice::Verdict::excluded) return;
  const bool is_known = verdict == ProcessChoice::Verdict::profiled;
  BuiltStack stack = is_known ? stacks_.build(sample) : stacks_.build_marker(Loss::too_many_processes);
  ThreadKey thread;
  if (is_known) thread = {sample.pid, sample.tid, processes_.incarnation_of(sample.pid)};
  const auto known_context = is_known ? contexts_.of(sample) : std::nullopt;
  const SampleContext* context = known_context ? &*known_context : nullptr;
  for (const auto& kind : kinds_)
    if (kind->has(sample.event)) kind->add(sample, thread, stack.frames, context);

  summary_.stacks++;
  idle_roots_.add(sample.pid);
  if (context != nullptr) summary_.contexts++;
  has_deep_stacks_ = has_deep_stacks_ || stack.is_deep;
  if (stack.reason != StopReason::complete)
    count_stop(summary_, stack.reason, files_.file(stack.stop_file).get());
  if (options_.on_sample) options_.on_sample(sample, stack, processes_, files_);
  if (options_.on_stack && sample.has_registers && is_known) {
    options_.on_stack(sample, stacks_.user_stack(), code_.modules(processes_.find_or_read(sample.pid)),
                      code_.rules(), files_);
  }
}

void Session::handle(const MapEvent& event) {
  if (!event.is_executable || !choice_.follows(event.pid)) return;
  FileIdentity identity{std::string(event.path), event.device_major, event.device_minor, event.inode,
                        event.build_id};
  processes_.map(event.pid, event.start, event.length, event.file_offset, identity);
}

void Session::handle(const ForkEvent& event) {
  if (cpu_ != nullptr) cpu_->add(event);
  processes_.fork(event.pid, event.parent_pid, event.tid, event.parent_tid);
}

void Session::handle(const CommEvent& event) {
  processes_.rename(event.pid, event.tid, event.comm, event.is_exec);
  if (!event.is_exec) return;
  stacks_.forget_thread(event.tid);
  contexts_.forget(event.pid);
}

void Session::handle(const ExitEvent& event) {
  processes_.exit(event.pid, event.tid);
  choice_.note_exit(event.pid);
  stacks_.forget_thread(event.tid);
  if (to_int(event.tid) == to_int(event.pid)) contexts_.forget(event.pid);
}

std::chrono::milliseconds Session::time_to_wait() const {
  Nanoseconds now = monotonic_now();
  auto wait = pace_.wait(now);
  if (options_.on_progress) wait = std::min(wait, 1'000ms);
  auto until = [&](Nanoseconds moment) {
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(moment - now, Nanoseconds(0)));
  };
  if (auto moment = cadence_.next()) wait = std::min(wait, until(*moment));
  if (options_.duration) wait = std::min(wait, until(started_ + *options_.duration));
  return wait;
}

}  // namespace ddprof
