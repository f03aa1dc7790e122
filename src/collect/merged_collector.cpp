#include "collect/merged_collector.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace ddprof {

namespace {

constexpr Nanoseconds kNoLimit = Nanoseconds::max();

// Totals and losses have no time of their own: they come with what was before them.
std::optional<Nanoseconds> time_of(const CollectorEvent& event) {
  return std::visit(
      [](const auto& known) -> std::optional<Nanoseconds> {
        if constexpr (requires { known.time; }) return known.time;
        return std::nullopt;
      },
      event);
}

}  // namespace

struct MergedCollector::Source {
  std::unique_ptr<Collector> collector;
  std::deque<OwnedEvent> waiting;
  Nanoseconds latest{};  // time of its last event
};

MergedCollector::MergedCollector(std::vector<std::unique_ptr<Collector>> collectors) {
  for (auto& collector : collectors) {
    sources_.push_back(std::make_unique<Source>());
    sources_.back()->collector = std::move(collector);
  }
}

MergedCollector::~MergedCollector() = default;

EventHandler MergedCollector::buffer_into(Source& source) {
  return [&source](const CollectorEvent& event) {
    source.latest = std::max(source.latest, time_of(event).value_or(source.latest));
    source.waiting.emplace_back(event, source.latest);
  };
}

Result<void> MergedCollector::collect(std::chrono::milliseconds timeout, const EventHandler& handle) {
  Nanoseconds limit = kNoLimit;
  timeout = std::min(timeout, longest_wait());
  for (const auto& source : sources_) {
    const std::size_t before = source->waiting.size();
    TRY(source->collector->collect(std::exchange(timeout, std::chrono::milliseconds(0)),
                                   buffer_into(*source)));
    const bool has_said_something = source->waiting.size() > before;
    if (has_said_something && !source->collector->is_finished()) limit = std::min(limit, source->latest);
  }
  release(limit, handle);
  return {};
}

Result<void> MergedCollector::drain(const EventHandler& handle) {
  for (const auto& source : sources_) TRY(source->collector->drain(buffer_into(*source)));
  release(kNoLimit, handle);
  return {};
}

void MergedCollector::release(Nanoseconds limit, const EventHandler& handle) {
  const auto time_of_first = [](const std::unique_ptr<Source>& source) {
    return source->waiting.empty() ? kNoLimit : source->waiting.front().time();
  };
  while (true) {
    const auto first = std::min_element(
        sources_.begin(), sources_.end(),
        [&](const auto& left, const auto& right) { return time_of_first(left) < time_of_first(right); });
    if (first == sources_.end() || (*first)->waiting.empty() || (*first)->waiting.front().time() > limit)
      return;
    handle((*first)->waiting.front().event());
    (*first)->waiting.pop_front();
  }
}

std::optional<std::int64_t> MergedCollector::exact_total(std::uint32_t event) {
  for (const auto& source : sources_)
    if (auto total = source->collector->exact_total(event)) return total;
  return std::nullopt;
}

bool MergedCollector::is_finished() {
  return std::all_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source->collector->is_finished() && source->waiting.empty();
  });
}

CollectorCounters MergedCollector::counters() const {
  CollectorCounters sum;
  for (const auto& source : sources_) {
    const CollectorCounters counters = source->collector->counters();
    sum.samples += counters.samples;
    sum.lost_records += counters.lost_records;
    sum.throttled += counters.throttled;
    sum.filtered_samples += counters.filtered_samples;
    sum.thinned_samples += counters.thinned_samples;
    sum.malformed_records += counters.malformed_records;
    sum.wakeups += counters.wakeups;
    sum.lost_contexts += counters.lost_contexts;
    const HeapCounters& heap = counters.heap;
    if (heap.attached + heap.refused + heap.limited > 0) sum.heap = heap;
  }
  return sum;
}

std::string MergedCollector::describe() const {
  std::vector<std::string> texts;
  for (const auto& source : sources_) texts.push_back(source->collector->describe());
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::vector<std::string> MergedCollector::notices() const {
  std::vector<std::string> all;
  for (const auto& source : sources_)
    for (std::string& notice : source->collector->notices()) all.push_back(std::move(notice));
  return all;
}

CollectorScope MergedCollector::scope() const {
  CollectorScope all;
  for (const auto& source : sources_) {
    CollectorScope scope = source->collector->scope();
    for (const Pid pid : scope.processes)
      if (std::find(all.processes.begin(), all.processes.end(), pid) == all.processes.end())
        all.processes.push_back(pid);
    std::move(scope.refused.begin(), scope.refused.end(), std::back_inserter(all.refused));
    if (all.kernel_need.empty()) all.kernel_need = std::move(scope.kernel_need);
  }
  return all;
}

std::vector<NeededCall> MergedCollector::needed_calls() const {
  std::vector<NeededCall> all;
  for (const auto& source : sources_)
    for (const NeededCall& call : source->collector->needed_calls()) all.push_back(call);
  return all;
}

// If the first is. In a pause no CPU time is sampled; allocations go on.
Pausable* MergedCollector::pausable() {
  return sources_.front()->collector->pausable() != nullptr ? this : nullptr;
}

Result<void> MergedCollector::pause(const EventHandler& handle) {
  for (const auto& source : sources_)
    if (Pausable* pausable = source->collector->pausable()) TRY(pausable->pause(buffer_into(*source)));
  release(kNoLimit, handle);
  return {};
}

Result<void> MergedCollector::resume() {
  for (const auto& source : sources_)
    if (Pausable* pausable = source->collector->pausable()) TRY(pausable->resume());
  return {};
}

std::optional<Nanoseconds> MergedCollector::paused_since() const {
  return sources_.front()->collector->pausable()->paused_since();
}

RateControl* MergedCollector::rate_control() {
  for (const auto& source : sources_)
    if (RateControl* rate = source->collector->rate_control()) return rate;
  return nullptr;
}

ThreadContextSource* MergedCollector::thread_contexts() {
  for (const auto& source : sources_)
    if (ThreadContextSource* contexts = source->collector->thread_contexts()) return contexts;
  return nullptr;
}

LiveHeap* MergedCollector::live_heap() {
  for (const auto& source : sources_)
    if (LiveHeap* heap = source->collector->live_heap()) return heap;
  return nullptr;
}

TableReader* MergedCollector::table_reader() {
  for (const auto& source : sources_)
    if (TableReader* reader = source->collector->table_reader()) return reader;
  return nullptr;
}

std::chrono::milliseconds MergedCollector::longest_wait() const {
  auto shortest = Collector::longest_wait();
  for (const auto& source : sources_) shortest = std::min(shortest, source->collector->longest_wait());
  return shortest;
}

std::vector<std::string> MergedCollector::target_environment() const {
  std::vector<std::string> all;
  for (const auto& source : sources_)
    for (std::string& variable : source->collector->target_environment()) all.push_back(std::move(variable));
  return all;
}

// A byte before each note says whose it is.
Result<void> MergedCollector::take_over(int wake_fd, NoteSender sender) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Handover* handover = sources_[i]->collector->handover();
    if (handover == nullptr) continue;
    TRY(handover->take_over(wake_fd, [sender, i](std::span<const std::byte> note, int fd) {
      std::array<std::byte, kMaxNoteBytes> marked{static_cast<std::byte>(i)};
      const std::size_t size = std::min(note.size(), marked.size() - 1);
      std::memcpy(marked.data() + 1, note.data(), size);
      if (sender) sender(std::span(marked).first(size + 1), fd);
    }));
  }
  return {};
}

void MergedCollector::follow(std::span<const std::byte> note, UniqueFd fd) {
  if (note.empty() || std::to_integer<std::size_t>(note.front()) >= sources_.size()) return;
  Handover* handover = sources_[std::to_integer<std::size_t>(note.front())]->collector->handover();
  if (handover != nullptr) handover->follow(note.subspan(1), std::move(fd));
}

void MergedCollector::reclaim() {
  for (const auto& source : sources_)
    if (Handover* handover = source->collector->handover()) handover->reclaim();
}

}  // namespace ddprof
