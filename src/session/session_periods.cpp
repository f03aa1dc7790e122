#include <algorithm>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "session/session.hpp"

// What a session tells of itself: to the profile of each period, to the summary, and to the worker after it.

namespace ddprof {

void Session::begin() {
  const bool is_first = inherited_.started == 0;
  const Nanoseconds now = monotonic_now();
  continuity_.suspects.blame_unfinished(now);  // the worker before us ended in the middle of it
  pace_.begin(now);
  started_ = is_first ? now : Nanoseconds(inherited_.started);
  if (is_first) {
    cadence_.begin(now);
  } else {
    cadence_.begin(Nanoseconds(inherited_.period_started), now, paused_since());
  }
  sequence_ = inherited_.sequence;
  summary_.looked_at = Nanoseconds(inherited_.looked_at);
  summary_.stacks = inherited_.stacks;
  summary_.contexts = inherited_.contexts;
  summary_.contexts_over_budget = inherited_.contexts_over_budget;
  for (std::size_t reason = 0; reason < kStopReasons; ++reason) {
    if (inherited_.stopped[reason] > 0)
      summary_.stopped[{static_cast<StopReason>(reason), ""}] = inherited_.stopped[reason];
  }
  choice_.resume(inherited_.excluded, inherited_.over_limit);
  if (cpu_ != nullptr) is_first ? cpu_->start(first_processes()) : cpu_->resume(inherited_);
  idle_roots_.resume(inherited_);
  update_summary();
  told_ = summary_;
  if (is_first) {
    inherited_.started = started_.count();
    inherited_.period_started = now.count();
    std::ignore = unix_offset();  // a worker that tells the same period again must give it the same time
    continuity_.commit(inherited_);
  }
}

// What no record tells the beginning of.
std::vector<Pid> Session::first_processes() const {
  std::vector<Pid> followed =
      options_.target.is_about_to_exec() ? std::vector<Pid>() : collector_.scope().processes;
  return followed.empty() ? options_.target.pids : followed;
}

Result<void> Session::keep_cadence(Nanoseconds now, const EventHandler& dispatch) {
  switch (cadence_.due(now)) {
    case Cadence::Step::none:
      return {};
    case Cadence::Step::close:
      close_period(now, false);
      return {};
    case Cadence::Step::pause:
      return pause(dispatch);
    case Cadence::Step::resume:
      now = monotonic_now();  // before the first sample
      TRY(collector_.pausable()->resume());
      cadence_.resumed(now);
      pace_ = Pace();
      pace_.begin(now);
      return {};
  }
  return {};
}

// The profile ends where the pause began, which another worker may have made.
Result<void> Session::pause(const EventHandler& dispatch) {
  TRY(collector_.pausable()->pause(dispatch));
  close_period(paused_since().value_or(monotonic_now()), false);
  return {};
}

// What is left: in a pause there is nothing.
void Session::finish(const EventHandler& dispatch) {
  const bool is_final = ending_ == WorkerEnd::none;
  const bool is_paused = cadence_.is_paused();
  Result<void> done;
  if (is_final) {  // nothing is sampled any more: what the rings still hold is the rest
    done = collector_.drain(dispatch);
    if (!is_paused) close_period(paused_since().value_or(monotonic_now()), true);
  } else if (cadence_.has_pauses()) {
    if (!is_paused) done = pause(dispatch);
  } else if (std::any_of(kinds_.begin(), kinds_.end(), [](const auto& kind) { return !kind->is_empty(); })) {
    close_period(monotonic_now(), false);
  }
  if (!done) options_.notices.push_back(done.error().message);
}

void Session::close_period(Nanoseconds end, bool is_final) {
  std::vector<ClosedPart> parts;
  for (const auto& kind : kinds_) {
    parts.push_back(kind->close(cadence_.start(), end, is_final, cpu_budget_.factor()));
    summary_.contexts_over_budget += parts.back().profile.contexts_over_budget;
  }
  summary_.looked_at += end - cadence_.start();
  ClosedPeriod period = describe(end, std::move(parts));
  period.is_last = is_final;
  finisher_.post_period(std::move(period));
  if (options_.on_period) options_.on_period(told_, summary_);
  told_ = summary_;
  choice_.close_period();
  if (cpu_ != nullptr && cpu_->has_detached()) processes_.note_lost_records();
  processes_.forget_ended();
  code_.forget_unused();
  cadence_.closed(end);
  if (options_.periods_per_worker > 0 && ++periods_ >= options_.periods_per_worker && !is_final &&
      ending_ == WorkerEnd::none)
    ending_ = WorkerEnd::scheduled;
}

Nanoseconds Session::unix_offset() {
  constexpr Nanoseconds kStep = std::chrono::milliseconds(100);
  const Nanoseconds offset = unix_now() - monotonic_now();
  const Nanoseconds known(inherited_.unix_offset);
  // Two clocks cannot be read at once. A period begins where the one before it ended, to the nanosecond,
  // unless somebody has set the clock.
  if (known.count() == 0 || std::chrono::abs(offset - known) > kStep) inherited_.unix_offset = offset.count();
  return Nanoseconds(inherited_.unix_offset);
}

Legacy Session::bequeath(Nanoseconds end) const {
  Legacy legacy = inherited_;
  legacy.sequence = sequence_;
  legacy.period_started = cadence_.start_after(end).count();
  legacy.looked_at = summary_.looked_at.count();
  legacy.stacks = summary_.stacks;
  legacy.contexts = summary_.contexts;
  legacy.contexts_over_budget = summary_.contexts_over_budget;
  legacy.stopped = {};
  for (const auto& [key, count] : summary_.stopped)
    legacy.stopped[static_cast<std::size_t>(key.first)] += count;
  legacy.excluded = choice_.excluded();
  legacy.over_limit = choice_.over_limit();
  legacy.lost_records = summary_.collector.lost_records;
  legacy.throttled = summary_.collector.throttled;
  if (cpu_ != nullptr) cpu_->bequeath(legacy);
  idle_roots_.bequeath(legacy);
  return legacy;
}

ClosedPeriod Session::describe(Nanoseconds end, std::vector<ClosedPart> parts) {
  ClosedPeriod period;
  period.sequence = sequence_++;
  period.start = cadence_.start();
  period.end = end;
  for (ClosedPart& part : parts) {
    for (ThreadKey thread : part.profile.threads) {
      part.labels.push_back(processes_.names(thread.pid, thread.tid, thread.incarnation));
      part.processes.push_back(identities_.add(thread.pid, part.labels.back()));
    }
  }
  period.processes = identities_.take();
  if (!is_whole_host()) period.target = processes_.read_published(options_.target.root());
  period.files = files_.files();
  period.mappings = code_.representatives();
  period.unix_start = period.start + unix_offset();
  update_summary();
  period.comments = {"ddprof " DDPROF_VERSION, closing_line(summary_), "engine: " + summary_.engine};
  if (cadence_.has_pauses()) period.comments.push_back(pauses_text(end - period.start));
  for (std::string& line : self_report(summary_)) period.comments.push_back(std::move(line));
  period.legacy = bequeath(end);
  if (!options_.service.empty()) period.comments.push_back("service: " + options_.service);
  period.parts = std::move(parts);
  return period;
}

std::string Session::pauses_text(Nanoseconds length) const {
  return fmt::format("looked at: {:.3f} s of a period of {} s; CPU time outside of it is in no profile",
                     std::chrono::duration<double>(length).count(), options_.period->count());
}

void Session::update_summary() {
  summary_.duration = monotonic_now() - started_;
  summary_.collector = collector_.counters();
  summary_.collector.lost_records += inherited_.lost_records;
  summary_.collector.throttled += inherited_.throttled;
  summary_.slow_down = cpu_budget_.factor();
  summary_.has_pauses = cadence_.has_pauses();
  for (std::size_t end = 0; end < kWorkerEnds; ++end) summary_.worker_ends[end] = continuity_.ends[end];
  summary_.engine = collector_.describe();
  summary_.notices = options_.notices;
  for (const std::string& notice : collector_.notices()) summary_.notices.push_back(notice);
  for (std::string& problem : code_.problems()) summary_.notices.push_back(std::move(problem));
  if (std::string notice = idle_roots_.notice(); !notice.empty())
    summary_.notices.push_back(std::move(notice));
  if (cpu_ != nullptr) {
    summary_.exact_cpu = cpu_->totals().exact;
    summary_.sampled_cpu = cpu_->totals().sampled;
    summary_.losses = cpu_->totals().losses;
  }
  summary_.excluded = choice_.excluded();
  summary_.over_limit = choice_.over_limit();
  summary_.outcome = finisher_.outcome();
  summary_.outcome.sent += inherited_.sent;
  summary_.outcome.dropped += inherited_.dropped;
  summary_.outcome.failed += inherited_.failed;
  summary_.outcome.delivery.dropped += inherited_.spool_dropped;
  measure_self(summary_);
  summary_.own_cpu += Nanoseconds(continuity_.earlier_cpu);
}

}  // namespace ddprof
