#include "collect/replay/replay_engine.hpp"

#include <utility>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

// The kinds of events that a session looks up by index.
const std::uint32_t* event_index(const CollectorEvent& event) {
  if (const auto* sample = std::get_if<SampleEvent>(&event)) return &sample->event;
  if (const auto* total = std::get_if<TaskTotalEvent>(&event)) return &total->event;
  if (const auto* tick = std::get_if<TickEvent>(&event)) return &tick->event;
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<ReplayCollector>> ReplayCollector::open(std::string recording, std::size_t events) {
  std::unique_ptr<ReplayCollector> collector(new ReplayCollector(std::move(recording), events));
  collector->reader_ = TRY(EventFileReader::open(std::as_bytes(std::span(collector->recording_))));
  return collector;
}

Result<void> ReplayCollector::collect(std::chrono::milliseconds, const EventHandler& handle) {
  while (!reader_->is_at_end()) {
    const EventFileReader::Record record = TRY(reader_->next());
    if (std::holds_alternative<RecordedBatchEnd>(record)) return {};
    if (const auto* total = std::get_if<RecordedTotal>(&record)) {
      if (total->event < totals_.size()) totals_[total->event] = total->value;
    } else {
      play(std::get<CollectorEvent>(record), handle);
    }
  }
  return {};
}

Result<void> ReplayCollector::drain(const EventHandler& handle) {
  while (!reader_->is_at_end()) TRY(collect({}, handle));
  return {};
}

void ReplayCollector::play(const CollectorEvent& event, const EventHandler& handle) {
  const std::uint32_t* index = event_index(event);
  if (index != nullptr && *index >= totals_.size()) {
    ++counters_.malformed_records;
    return;
  }
  if (std::holds_alternative<SampleEvent>(event)) ++counters_.samples;
  if (const auto* lost = std::get_if<LostEvent>(&event)) counters_.lost_records += lost->records;
  handle(event);
}

std::optional<std::int64_t> ReplayCollector::exact_total(std::uint32_t event) {
  return event < totals_.size() ? totals_[event] : std::nullopt;
}

Result<std::unique_ptr<Collector>> ReplayEngine::open(const Target&, const EngineOptions& options) const {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;
  std::string recording = TRY(read_file(options.source, kMaxBytes));
  return std::unique_ptr<Collector>(TRY(ReplayCollector::open(std::move(recording), options.events.size())));
}

}  // namespace ddprof
