#include "session/session.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

// How often to look. While tasks come and go, often: a fork storm has to be noticed while it rages, and files
// of a short process while it lives. Samples alone can wait, and an idle target is left alone.
constexpr std::chrono::milliseconds kEventfulPace = 50ms;
constexpr std::chrono::milliseconds kSamplingPace = 250ms;
constexpr std::chrono::milliseconds kIdlePace = 60s;
constexpr std::chrono::milliseconds kFirstPace = 5ms;
constexpr std::chrono::milliseconds kBeginning = 1s;
constexpr std::uint64_t kFirstStacks = 20;

}  // namespace

Session::Session(Collector& collector, Destination& destination, SessionOptions options)
    : collector_(collector),
      options_(std::move(options)),
      stacks_(processes_, code_, Architecture::x86_64),
      columns_(options_.events),
      aggregator_(columns_.columns),
      finisher_(destination, options_.naming) {
  auto clock = std::find_if(options_.events.begin(), options_.events.end(),
                            [](const EventSpec& spec) { return spec.is_clock; });
  if (clock != options_.events.end()) {
    auto event = static_cast<std::uint32_t>(clock - options_.events.begin());
    cpu_.emplace(event, options_, columns_, collector_, processes_);
  }
  summary_.output = destination.describe();
  summary_.samples_kernel = options_.samples_kernel;
}

Summary Session::run(const std::atomic<bool>& stop) {
  started_ = period_started_ = monotonic_now();
  if (cpu_) cpu_->start();
  if (options_.root && !options_.is_started_by_us) processes_.find_or_read(*options_.root);

  std::uint64_t samples = 0;
  std::uint64_t others = 0;
  const EventHandler dispatch = [&](const CollectorEvent& event) {
    ++(std::holds_alternative<SampleEvent>(event) ? samples : others);
    std::visit([this](const auto& known) { handle(known); }, event);
  };
  while (!stop && !collector_.is_finished()) {
    samples = others = 0;
    auto collected = collector_.collect(time_to_wait(), dispatch);
    if (!collected) {
      options_.notices.push_back(collected.error().message);
      break;
    }
    pace_ = others > 0 ? kEventfulPace : std::min(pace_ * 2, samples > 0 ? kSamplingPace : kIdlePace);
    if (has_deep_stacks_) collector_.deliver_at_once();
    Nanoseconds now = monotonic_now();
    if (options_.duration && now - started_ >= *options_.duration) break;
    if (cpu_) cpu_->refresh_charge(now);
    if (options_.period && now - period_started_ >= *options_.period) close_period(false);
    if (options_.on_progress && now >= next_progress_) {
      next_progress_ = now + 1s;
      update_summary();
      options_.on_progress(summary_);
    }
  }

  // From here on nothing is sampled any more: what the rings still hold is the rest.
  if (auto drained = collector_.drain(dispatch); !drained)
    options_.notices.push_back(drained.error().message);
  close_period(true);
  finisher_.finish();
  update_summary();
  return std::move(summary_);
}

void Session::handle(const SampleEvent& sample) {
  BuiltStack stack = stacks_.build(sample);
  const Process* process = processes_.find(sample.pid);
  ThreadKey thread{sample.pid, sample.tid, process != nullptr ? process->incarnation : 0};
  const auto& columns = columns_.events[sample.event];
  std::uint32_t column = sample.is_estimate && columns.estimate ? *columns.estimate : columns.value;
  std::uint32_t added =
      columns.samples ? aggregator_.add(thread, stack.frames, {{*columns.samples, 1}, {column, sample.value}})
                      : aggregator_.add(thread, stack.frames, {{column, sample.value}});
  if (options_.has_timeline && columns.samples) aggregator_.add_moment(added, sample.time);
  if (cpu_) cpu_->add(sample);

  summary_.stacks++;
  has_deep_stacks_ = has_deep_stacks_ || stack.is_deep;
  if (stack.reason != StopReason::complete) stopped_[{stack.reason, stack.stop_file}]++;
  if (options_.on_sample) options_.on_sample(sample, stack, processes_, files_);
  if (options_.on_stack && sample.has_registers) {
    options_.on_stack(sample, stacks_.user_stack(), code_.modules(processes_.find_or_read(sample.pid)),
                      code_.rules(), files_);
  }
}

void Session::handle(const MapEvent& event) {
  if (!event.is_executable) return;
  FileIdentity identity{std::string(event.path), event.device_major, event.device_minor, event.inode,
                        event.build_id};
  processes_.map(event.pid, event.start, event.length, event.file_offset, identity);
}

void Session::handle(const ForkEvent& event) {
  if (cpu_) cpu_->add(event);
  processes_.fork(event.pid, event.parent_pid, event.tid, event.parent_tid);
}

void Session::handle(const CommEvent& event) {
  processes_.rename(event.pid, event.tid, event.comm, event.is_exec);
  if (event.is_exec) stacks_.forget_thread(event.tid);
}

void Session::handle(const ExitEvent& event) {
  processes_.exit(event.pid, event.tid);
  stacks_.forget_thread(event.tid);
}

void Session::close_period(bool is_final) {
  Nanoseconds now = monotonic_now();
  AggregatedProfile profile = cpu_ ? cpu_->close(aggregator_, period_started_, now, is_final)
                                   : aggregator_.take(period_started_, now);
  finisher_.post_period(describe(std::move(profile)));
  processes_.forget_ended();
  code_.forget_unused();
  period_started_ = now;
}

ClosedPeriod Session::describe(AggregatedProfile profile) {
  ClosedPeriod period;
  const EventSpec& first = options_.events.front();
  period.sequence = sequence_++;
  period.visible_columns = columns_.visible;
  period.count_column = columns_.events.front().samples;
  for (ThreadKey thread : profile.threads) {
    period.labels.push_back(processes_.names(thread.pid, thread.tid, thread.incarnation));
  }
  for (std::size_t id = 0; id < files_.size(); ++id)
    period.files.push_back(files_.file(static_cast<FileId>(id)));
  period.mappings = code_.representatives();
  period.unix_start = unix_now() - (monotonic_now() - profile.start);
  period.period_type = first.label;
  period.period_unit = first.unit;
  period.period = first.sample_value();
  period.default_column = first.label;
  update_summary();
  period.comments = {"ddprof " DDPROF_VERSION, closing_line(summary_), "engine: " + summary_.engine};
  if (!options_.service.empty()) period.comments.push_back("service: " + options_.service);
  period.profile = std::move(profile);
  return period;
}

std::chrono::milliseconds Session::time_to_wait() const {
  Nanoseconds now = monotonic_now();
  // The beginning decides how to go on (fork storms, deep stacks), so it is watched closely.
  bool is_beginning = now - started_ < kBeginning;
  bool is_undecided = is_beginning && (pace_ == kEventfulPace || summary_.stacks < kFirstStacks);
  auto wait = is_undecided ? std::min(pace_, kFirstPace) : pace_;
  wait = options_.on_progress ? std::min(wait, 1'000ms) : wait;
  auto until = [&](Nanoseconds moment) {
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(moment - now, Nanoseconds(0)));
  };
  if (options_.period) wait = std::min(wait, until(period_started_ + *options_.period));
  if (options_.duration) wait = std::min(wait, until(started_ + *options_.duration));
  return wait;
}

void Session::update_summary() {
  summary_.duration = monotonic_now() - started_;
  summary_.collector = collector_.counters();
  summary_.engine = collector_.describe();
  summary_.notices = options_.notices;
  for (const std::string& notice : collector_.notices()) summary_.notices.push_back(notice);
  if (cpu_) {
    summary_.exact_cpu = cpu_->totals().exact;
    summary_.sampled_cpu = cpu_->totals().sampled;
    summary_.losses = cpu_->totals().losses;
  }
  summary_.stopped.clear();
  for (const auto& [key, count] : stopped_) {
    const CodeFile* file = files_.file(key.second).get();
    summary_.stopped[{key.first, file != nullptr ? file->base_name() : ""}] += count;
  }
  summary_.outcome = finisher_.outcome();
  measure_self(summary_);
}

}  // namespace ddprof
