// One run of the profiler, top to bottom: collect, unwind, aggregate, close a period, name, encode, send.
//
//   sampling thread   run -> collect -> handle(SampleEvent): StackBuilder, ProfileKind (Aggregator)
//                     run -> keep_cadence -> close_period -> Finisher::post_period
//   finishing thread  finish_period: Namer, Destination (encodes and sends), Continuity

#include "session/session.hpp"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "base/foreign_file.hpp"
#include "base/turns.hpp"
#include "session/unseen_allocator.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

// A worker that is not heard of for so long after it said that it would be back has hung. Naming the last
// period takes longer than anything else.
constexpr Nanoseconds kPatience = 10s;
constexpr Nanoseconds kLastPatience = 60s;  // and the time for uploads

bool has_user_stack(const SampleEvent& sample) { return sample.has_registers || !sample.user_chain.empty(); }

}  // namespace

Session::Session(Collector& collector, Destination& destination, SessionOptions options)
    : collector_(collector),
      destination_(destination),
      options_(std::move(options)),
      clock_(*options_.clock),
      continuity_(options_.worker.continuity != nullptr ? *options_.worker.continuity : own_continuity_),
      earlier_(believed(continuity_.handover(), clock_.now(),
                        clock_.now() + options_.periods.length.value_or(std::chrono::seconds(0)))),
      stacks_(processes_, code_, Architecture::x86_64),
      contexts_(collector_.thread_contexts(), processes_, files_),
      periods_(options_.periods, clock_),
      // Without a rate to change there is nothing to hold the CPU time with.
      budgets_({collector_.rate_control() != nullptr ? options_.limits.cpu : 0, options_.limits.memory}),
      idle_roots_(options_.target.is_about_to_exec() ? std::vector<Pid>() : options_.target.pids),
      finisher_({.finish = [this](const ClosedPeriod& period) { finish_period(period); },
                 .give_up = [this] { destination_.give_up(); }},
                options_.exit_timeout) {
  options_.naming.guard = file_guard();
  Turns::set_rest(options_.naming.rest);
  const CpuAccountOptions cpu{
      .root = options_.target.root(), .has_pauses = periods_.has_pauses(), .charged = options_.charged_cpu};
  for (const EventSpec& event : options_.events) {
    const std::string name(ProfileKind::name_of(event));
    if (std::any_of(kinds_.begin(), kinds_.end(), [&](const auto& kind) { return kind->name() == name; }))
      continue;
    kinds_.push_back(std::make_unique<ProfileKind>(name, options_.events, options_.has_timeline, cpu,
                                                   collector_, processes_,
                                                   AggregatorBudget::within(options_.limits.memory)));
    if (cpu_ == nullptr) cpu_ = kinds_.back()->account();
    if (event.is_live && collector_.live_heap() != nullptr)
      live_.emplace(event.sample_value(), AggregatorBudget::within(options_.limits.memory));
  }
  if (const TableReader* reader = collector_.table_reader()) code_.begin_with(reader->published_rules());
  summary_.output = destination.describe();
  summary_.kernel_need = collector_.scope().kernel_need;
}

// Less than rings hold, and that is less at high rates: docs/sampling.md.
FileThreads::Limits Session::waiting_limits() const {
  if (options_.most_waiting) return {.most_waiting = *options_.most_waiting};
  constexpr std::uint64_t kHighRate = 250;
  const bool is_fast = std::any_of(options_.events.begin(), options_.events.end(),
                                   [](const EventSpec& event) { return event.frequency >= kHighRate; });
  return {.most_waiting = is_fast ? 50ms : 300ms};
}

Summary Session::run(const std::atomic<bool>& stop) {
  begin();
  const EventHandler dispatch = [&](const CollectorEvent& event) {
    pace_.count(std::holds_alternative<SampleEvent>(event));
    std::visit([this](const auto& known) { handle(known); }, event);
  };
  while (!stop && !collector_.is_finished() && ending_ == WorkerEnd::none) {
    auto done = collect(dispatch);
    if (done && periods_.is_run_over(clock_.now())) break;
    if (done) done = keep_cadence(dispatch);
    if (!done) {
      options_.notices.push_back(done.error().message);
      break;
    }
    keep_within_budgets();
    if (options_.observer.on_progress && clock_.now() >= next_progress_) {
      next_progress_ = clock_.now() + 1s;
      update_summary();
      options_.observer.on_progress(summary_);
    }
  }
  if (stop && options_.worker.is_replaced && options_.worker.is_replaced()) ending_ = WorkerEnd::scheduled;
  continuity_.promise(clock_.now() + kLastPatience + options_.exit_timeout);
  close_last_period(dispatch);
  finisher_.finish();
  continuity_.suspects.forget_unfinished();
  update_summary();
  summary_.ending = ending_;
  return std::move(summary_);
}

// At the beginning of the run, or where an earlier worker left it.
void Session::begin() {
  const Nanoseconds now = clock_.now();
  continuity_.suspects.blame_unfinished(now);  // the worker before us ended in the middle of it
  pace_.begin(now);
  periods_.begin(earlier_, now, paused_since());
  if (cpu_ != nullptr)
    periods_.is_first_worker() ? cpu_->start(first_processes(), now) : cpu_->resume(earlier_, now);
  idle_roots_.resume(earlier_);
  summary_.observed = Nanoseconds(earlier_.observed);
  for (std::size_t reason = 0; reason < kStopReasons; ++reason) {
    if (earlier_.stopped[reason] > 0)
      summary_.stopped[{static_cast<StopReason>(reason), ""}] = earlier_.stopped[reason];
  }
  update_summary();
  last_summary_ = summary_;
  if (periods_.is_first_worker()) continuity_.commit(hand_over());
  if (options_.target.is_about_to_exec()) return;
  for (const Pid pid : first_processes()) processes_.find_or_read(pid);
  idle_roots_.name(processes_);
}

// What no record tells the beginning of.
std::vector<Pid> Session::first_processes() const {
  std::vector<Pid> followed =
      options_.target.is_about_to_exec() ? std::vector<Pid>() : collector_.scope().processes;
  return followed.empty() ? options_.target.pids : followed;
}

// --- Collect -------------------------------------------------------------------------------------------

Result<void> Session::collect(const EventHandler& dispatch) {
  const auto wait = time_to_wait();
  continuity_.promise(clock_.now() + wait + kPatience);
  const Nanoseconds cpu_before = thread_cpu_now();
  TRY(collector_.collect(wait, dispatch));
  summary_.collecting_cpu += thread_cpu_now() - cpu_before;
  pace_.update();
  add_postponed();
  publish_tables();
  const Nanoseconds now = clock_.now();
  contexts_.look_around(now);
  if (is_whole_host()) processes_.read_all_published(now);
  if (RateControl* rate = collector_.rate_control(); rate != nullptr && has_deep_stacks_)
    rate->deliver_at_once();
  if (cpu_ != nullptr) cpu_->refresh_charge(now);
  return {};
}

std::chrono::milliseconds Session::time_to_wait() const {
  const Nanoseconds now = clock_.now();
  auto wait = pace_.wait(now);
  if (options_.observer.on_progress) wait = std::min(wait, 1'000ms);
  if (!postponed_.empty()) wait = std::min(wait, 20ms);
  if (const auto moment = periods_.next())
    wait =
        std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(std::max(*moment - now, Nanoseconds(0))));
  return wait;
}

// --- Unwind and aggregate ------------------------------------------------------------------------------

void Session::handle(const SampleEvent& sample) {
  const auto choice = choice_.choose(sample, options_.events[sample.event].is_clock);
  if (choice == ProcessChoice::Choice::excluded) return;
  const bool is_profiled = choice == ProcessChoice::Choice::profiled;
  if (is_profiled && has_user_stack(sample) && !options_.most_waiting) {
    const bool is_ready = !postponed_.has(sample.pid) && code_.is_ready(processes_.find_or_read(sample.pid));
    if (!is_ready && postponed_.add(sample, clock_.now())) return;
  }
  add(sample, is_profiled);
}

// Those whose files are there by now, or have been waited for long enough.
void Session::add_postponed() {
  for (const Pid pid : postponed_.processes()) {
    const bool is_late = clock_.now() - postponed_.since(pid) > PostponedSamples::kLongest;
    if (is_late || code_.is_ready(processes_.find_or_read(pid))) add_postponed_of(pid);
  }
}

void Session::add_postponed_of(Pid pid) {
  postponed_.take(pid, [this](const SampleEvent& sample) { add(sample, true); });
}

// For what walks stacks in the target itself.
void Session::publish_tables() {
  TableReader* reader = collector_.table_reader();
  if (reader == nullptr) return;
  for (const Pid pid : reader->processes()) {
    const Process& process = processes_.find_or_read(pid);
    if (code_.is_ready(process)) reader->publish(pid, code_.modules(process), code_.rules());
  }
}

void Session::add(const SampleEvent& sample, bool is_profiled) {
  const BuiltStack stack =
      is_profiled ? stacks_.build(sample) : stacks_.build_marker(Loss::too_many_processes);
  ThreadKey thread;
  if (is_profiled) thread = {sample.pid, sample.tid, processes_.incarnation_of(sample.pid)};
  const auto context = is_profiled ? contexts_.of(sample) : std::nullopt;
  for (const auto& kind : kinds_)
    if (kind->has(sample.event)) kind->add(sample, thread, stack.frames, context ? &*context : nullptr);

  if (live_ && sample.stack_id != 0 && live_->remember(sample.pid, sample.stack_id, thread, stack.frames))
    collector_.live_heap()->keep_stack(sample.pid, sample.stack_id, stacks_.addresses(sample));

  ++(options_.events[sample.event].kind == EventSpec::Kind::allocation ? counted_.allocations
                                                                       : counted_.stacks);
  if (stack.is_from_code) counted_.stacks_from_code++;
  if (context) counted_.contexts++;
  if (stack.reason != StopReason::complete)
    count_stop(summary_, stack.reason, files_.file(stack.stop_file).get());
  idle_roots_.add(sample.pid);
  has_deep_stacks_ = has_deep_stacks_ || stack.is_deep;
  if (options_.observer.on_sample) options_.observer.on_sample(sample, stack, processes_, files_);
}

void Session::handle(const MapEvent& event) {
  if (!event.is_executable || !choice_.follows(event.pid)) return;
  FileIdentity identity{std::string(event.path), event.device_major, event.device_minor, event.inode,
                        event.build_id};
  processes_.map(event.pid, event.start, event.length, event.file_offset, identity);
}

void Session::handle(const ForkEvent& event) {
  if (cpu_ != nullptr) cpu_->add(event);
  if (event.pid != event.parent_pid) add_postponed_of(event.pid);  // of one that had this number before
  processes_.fork(event.pid, event.parent_pid, event.tid, event.parent_tid);
}

void Session::handle(const CommEvent& event) {
  if (event.is_exec) add_postponed_of(event.pid);
  processes_.rename(event.pid, event.tid, event.comm, event.is_exec);
  if (!event.is_exec) return;
  if (LiveHeap* heap = collector_.live_heap()) {
    heap->forget_blocks(event.pid, event.time);
    if (live_) live_->forget(event.pid, *heap);
  }
  stacks_.forget_thread(event.tid);
  contexts_.forget(event.pid);
}

void Session::handle(const ExitEvent& event) {
  processes_.exit(event.pid, event.tid);
  choice_.note_exit(event.pid);
  stacks_.forget_thread(event.tid);
  if (to_int(event.tid) == to_int(event.pid)) contexts_.forget(event.pid);
}

void Session::handle(const LostEvent& event) {
  if (cpu_ != nullptr) cpu_->add(event);
  processes_.note_lost_records();
}

// --- Close a period ------------------------------------------------------------------------------------

// On request, before its time. In a pause there is nothing to close.
Result<void> Session::flush(const EventHandler& dispatch) {
  const std::uint32_t wanted = options_.worker.flushes_wanted ? options_.worker.flushes_wanted() : 0;
  if (wanted == continuity_.flushes || !options_.periods.length) return {};
  Result<void> done;
  if (periods_.has_pauses()) {
    if (!periods_.is_paused()) done = pause(dispatch);
  } else {
    close_period(clock_.now(), false);
  }
  continuity_.flushed_sequence = hand_over().sequence;
  continuity_.flushes = wanted;
  return done;
}

Result<void> Session::keep_cadence(const EventHandler& dispatch) {
  TRY(flush(dispatch));
  const Nanoseconds now = clock_.now();
  switch (periods_.due(now)) {
    case Cadence::Step::none:
      return {};
    case Cadence::Step::close:
      close_period(now, false);
      return {};
    case Cadence::Step::pause:
      return pause(dispatch);
    case Cadence::Step::resume:  // the period begins before its first sample
      TRY(collector_.pausable()->resume());
      periods_.resumed(now);
      pace_ = Pace();
      pace_.begin(now);
      return {};
  }
  return {};
}

// The profile ends where the pause began, which another worker may have made.
Result<void> Session::pause(const EventHandler& dispatch) {
  TRY(collector_.pausable()->pause(dispatch));
  close_period(paused_since().value_or(clock_.now()), false);
  return {};
}

std::optional<Nanoseconds> Session::paused_since() const {
  const Pausable* pausable = collector_.pausable();
  return pausable != nullptr ? pausable->paused_since() : std::nullopt;
}

// What the library in the target could not tell, or not keep track of. Nobody knows when what is not tracked
// is freed: it is told in the period in which it was allocated.
void Session::add_heap_losses() {
  const HeapCounters now = collector_.counters().heap;
  const Pid root = options_.target.root();
  const auto grown = [](std::uint64_t before, std::uint64_t after) {
    return static_cast<std::int64_t>(after - before);
  };
  for (const auto& kind : kinds_)
    if (kind->name() == "alloc" && now.lost > heap_losses_.lost)
      kind->add_lost(root, grown(heap_losses_.lost, now.lost),
                     grown(heap_losses_.lost_bytes, now.lost_bytes));
  if (live_ && now.untracked > heap_losses_.untracked)
    live_->add_untracked(root, grown(heap_losses_.untracked, now.untracked),
                         grown(heap_losses_.untracked_bytes, now.untracked_bytes));
  heap_losses_ = now;
}

// As long as no process has told of an allocation: the first one is asked why.
void Session::find_unseen_allocator() {
  const HeapCounters heap = sampling_counters().collector.heap;
  const bool is_sampled =
      std::any_of(kinds_.begin(), kinds_.end(), [](const auto& kind) { return kind->name() == "alloc"; });
  unseen_allocator_.clear();
  const Process* root = processes_.find(options_.target.root());
  if (!is_sampled || heap.attached + heap.limited > 0 || root == nullptr || root->program == FileId::none)
    return;
  std::vector<std::shared_ptr<const CodeFile>> files;
  for (const CodeMapping& mapping : root->space->mappings())
    if (mapping.file != FileId::none) files.push_back(files_.file(mapping.file));
  const std::string reason = why_unseen(*files_.file(root->program), files);
  if (!reason.empty()) unseen_allocator_ = "allocations: " + reason;
}

void Session::close_period(Nanoseconds end, bool is_final) {
  std::vector<ClosedPart> parts;
  for (const Pid pid : postponed_.processes()) add_postponed_of(pid);
  add_heap_losses();
  // At the end nothing is sampled any more that waiting could cost.
  files_.take_opened(is_final ? PatientOpener::kPatience : 0ms);
  find_unseen_allocator();
  for (const auto& kind : kinds_) {
    parts.push_back(kind->close(periods_.start(), end, is_final, budgets_.factor()));
    code_.settle(parts.back().profile);
    counted_.contexts_over_budget += parts.back().profile.contexts_over_budget;
  }
  if (live_) {
    const auto find = [this](Pid pid, std::span<const std::uint64_t> addresses) {
      SampleEvent sample;
      sample.pid = pid;
      sample.user_chain = addresses;
      return stacks_.build(sample).frames;
    };
    parts.push_back(
        live_->close(*collector_.live_heap(), find, options_.target.root(), periods_.start(), end));
    code_.settle(parts.back().profile);
    // Their code is in this profile, whether or not they were sampled in this period.
    for (const std::int32_t pid : live_->processes())
      if (const Process* process = processes_.find(Pid{pid})) code_.modules(*process);
  }
  summary_.observed += end - periods_.start();
  ClosedPeriod period = describe(periods_.close(end), std::move(parts));
  period.is_last = is_final;
  finisher_.post_period(std::move(period));
  if (options_.observer.on_period) options_.observer.on_period(last_summary_, summary_);
  last_summary_ = summary_;
  choice_.close_period();
  if (cpu_ != nullptr && cpu_->has_detached()) processes_.note_lost_records();
  processes_.forget_ended(live_ ? live_->processes() : absl::flat_hash_set<std::int32_t>());
  code_.forget_unused();
  stacks_.forget_unused();
  if (periods_.is_worker_over() && !is_final && ending_ == WorkerEnd::none) ending_ = WorkerEnd::scheduled;
}

absl::flat_hash_map<FileId, JitRuntime> Session::generated_code_owners() const {
  absl::flat_hash_map<FileId, JitRuntime> owners;
  files_.files().for_each([&](FileId id, const std::shared_ptr<const CodeFile>& file) {
    const Process* process = file->kind == CodeFile::Kind::jit ? processes_.find(file->pid) : nullptr;
    if (process == nullptr || process->space == nullptr) return;
    for (const CodeMapping& mapping : process->space->mappings()) {
      const auto& mapped = files_.file(mapping.file);
      const JitRuntime runtime = mapped ? runtime_of_file(mapped->base_name()) : JitRuntime::unknown;
      if (runtime != JitRuntime::unknown) owners[id] = runtime;
    }
  });
  return owners;
}

// Everything that the finishing thread needs, as values.
ClosedPeriod Session::describe(const PeriodTimes& times, std::vector<ClosedPart> parts) {
  ClosedPeriod period;
  period.times = times;
  for (ClosedPart& part : parts) {
    for (ThreadKey thread : part.profile.threads) {
      part.labels.push_back(processes_.names(thread.pid, thread.tid, thread.incarnation));
      part.processes.push_back(identities_.add(thread.pid, part.labels.back()));
    }
  }
  period.parts = std::move(parts);
  period.processes = identities_.take();
  if (!is_whole_host()) period.target = processes_.read_published(options_.target.root());
  period.files = files_.files();
  period.mappings = code_.representatives();
  period.runtimes = generated_code_owners();
  update_summary();
  period.comments = {"ddprof " DDPROF_VERSION, closing_line(summary_), "engine: " + summary_.engine};
  if (periods_.has_pauses())
    period.comments.push_back(fmt::format(
        "looked at: {:.3f} s of a period of {} s; CPU time outside of it is in no profile",
        std::chrono::duration<double>(times.end - times.start).count(), options_.periods.length->count()));
  for (std::string& line : self_report(summary_)) period.comments.push_back(std::move(line));
  if (!options_.service.empty()) period.comments.push_back("service: " + options_.service);
  period.handover = hand_over();
  return period;
}

// What is left: in a pause there is nothing.
void Session::close_last_period(const EventHandler& dispatch) {
  const bool is_final = ending_ == WorkerEnd::none;
  Result<void> done;
  if (is_final) {  // nothing is sampled any more: what the rings still hold is the rest
    done = collector_.drain(dispatch);
    if (!periods_.is_paused()) close_period(paused_since().value_or(clock_.now()), true);
  } else if (periods_.has_pauses()) {
    if (!periods_.is_paused()) done = pause(dispatch);
  } else if (std::any_of(kinds_.begin(), kinds_.end(), [](const auto& kind) { return !kind->is_empty(); })) {
    close_period(clock_.now(), false);
  }
  if (!done) options_.notices.push_back(done.error().message);
}

// --- Name, encode and send -----------------------------------------------------------------------------

// On the finishing thread. Once the period has left, the next worker need not tell it.
void Session::finish_period(const ClosedPeriod& period) {
  if (!namer_ || must_shrink_.exchange(false)) namer_.emplace(options_.naming);
  const Nanoseconds cpu_before = namer_->cpu_time();
  const Batch batch = namer_->name(period);
  const Nanoseconds naming_cpu = namer_->cpu_time() - cpu_before;
  finisher_.begin_sending();
  auto sent = destination_.send(batch);
  finisher_.end_sending();
  bool is_new_hint = false;
  {
    const std::lock_guard lock(export_mutex_);
    exported_.modules = namer_->modules();
    is_new_hint = !namer_->hints().empty() && exported_.hints.empty();
    if (!namer_->hints().empty()) exported_.hints = namer_->hints();
    exported_.naming_cpu += std::max(naming_cpu, Nanoseconds(0));
    ++(sent ? exports_.sent : exports_.failed);
    if (!sent && !exported_.first_error) exported_.first_error = std::move(sent).error();
  }
  // Once, and not beside the summary that will have it.
  if (is_new_hint && !period.is_last && options_.observer.say_notice) {
    for (const std::string& hint : namer_->hints()) options_.observer.say_notice(hint);
  }
  SessionHandover handover = period.handover;
  handover.counters = handover.counters + export_counters();
  handover.counters.delivery.waiting = handover.counters.delivery.waiting_bytes = 0;  // are counted anew
  continuity_.commit(handover);
}

// --- What it costs, and what is told of it -------------------------------------------------------------

void Session::keep_within_budgets() {
  const Budgets::Steps steps = budgets_.check(clock_.now(), clock_.own_cpu(), own_memory_bytes);
  if (RateControl* rate = collector_.rate_control(); rate != nullptr && steps.slow_down) {
    rate->slow_down(*steps.slow_down);
    if (cpu_ != nullptr) cpu_->slow_down(*steps.slow_down);
    if (options_.observer.say_notice && !steps.notice.empty()) options_.observer.say_notice(steps.notice);
  }
  if (steps.must_shrink) {
    code_.forget_all();
    stacks_.forget_all();
    must_shrink_ = true;
    ::malloc_trim(0);
  }
  if (steps.is_exceeded) {
    continuity_.suspects.blame_unfinished(clock_.now());
    ending_ = WorkerEnd::memory;
  }
}

// By all workers of the run.
Counters Session::sampling_counters() const {
  Counters counters = counted_;
  counters.unread_code = stacks_.code_refusals();
  counters.collector = collector_.counters();
  counters.excluded = choice_.excluded();
  counters.over_limit = choice_.over_limit();
  return counters + earlier_.counters;
}

// By this worker.
Counters Session::export_counters() const {
  Counters counters;
  {
    const std::lock_guard lock(export_mutex_);
    counters = exports_;
  }
  counters.dropped = finisher_.dropped();
  counters.delivery = destination_.counters();
  return counters;
}

SessionHandover Session::hand_over() const {
  SessionHandover handover;
  periods_.hand_over(handover);
  handover.observed = summary_.observed.count();
  handover.counters = sampling_counters();
  for (const auto& [key, count] : summary_.stopped)
    handover.stopped[static_cast<std::size_t>(key.first)] += count;
  if (cpu_ != nullptr) cpu_->hand_over(handover);
  idle_roots_.hand_over(handover);
  return handover;
}

void Session::update_summary() {
  static_cast<Counters&>(summary_) = sampling_counters() + export_counters();
  {
    const std::lock_guard lock(export_mutex_);
    summary_.exported = exported_;
  }
  summary_.exported.queued = finisher_.queued();
  summary_.duration = clock_.now() - periods_.started();
  summary_.slow_down = budgets_.factor();
  summary_.has_pauses = periods_.has_pauses();
  std::copy(continuity_.ends.begin(), continuity_.ends.end(), summary_.worker_ends.begin());
  summary_.engine = collector_.describe();
  summary_.notices = options_.notices;
  for (const std::string& notice : collector_.notices()) summary_.notices.push_back(notice);
  for (std::string& problem : code_.problems()) summary_.notices.push_back(std::move(problem));
  if (!unseen_allocator_.empty()) summary_.notices.push_back(unseen_allocator_);
  if (std::string notice = idle_roots_.notice(); !notice.empty())
    summary_.notices.push_back(std::move(notice));
  if (cpu_ != nullptr) {
    summary_.exact_cpu = cpu_->totals().exact;
    summary_.sampled_cpu = cpu_->totals().sampled;
    summary_.losses = cpu_->totals().losses;
  }
  summary_.own = options_.own_usage();
  summary_.own.cpu += Nanoseconds(continuity_.earlier_cpu);
}

}  // namespace ddprof
