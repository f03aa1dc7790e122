#include "session/profile_kind.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

std::string_view ProfileKind::name_of(const EventSpec& event) {
  return event.kind == EventSpec::Kind::allocation ? "alloc" : "cpu";
}

ProfileKind::ProfileKind(std::string name, const SessionOptions& options, Collector& collector,
                         const ProcessTable& processes)
    : name_(std::move(name)), options_(options), aggregator_(lay_out_columns()) {
  const auto clock =
      std::find_if(events_.begin(), events_.end(),
                   [](const std::optional<EventColumns>& event) { return event && event->estimate; });
  if (clock == events_.end()) return;
  const auto event = static_cast<std::uint32_t>(clock - events_.begin());
  account_.emplace(event, (*clock)->value, *(*clock)->estimate, options, collector, processes);
}

std::vector<Column> ProfileKind::lay_out_columns() {
  std::vector<Column> columns;
  const auto add = [&](std::string type, const std::string& unit) {
    columns.push_back({std::move(type), unit});
    return static_cast<std::uint32_t>(columns.size() - 1);
  };
  for (const EventSpec& event : options_.events) {
    events_.emplace_back();
    if (name_of(event) != name_) continue;
    EventColumns added;
    if (first_ == nullptr) added.samples = add(name_ == "cpu" ? "samples" : name_ + "-samples", "count");
    if (first_ == nullptr) first_ = &event;
    added.value = add(event.label, event.unit);
    events_.back() = added;
  }
  visible_columns_ = static_cast<std::uint32_t>(columns.size());
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (events_[i] && options_.events[i].is_clock)
      events_[i]->estimate = add("estimate", options_.events[i].unit);
  return columns;
}

void ProfileKind::add(const SampleEvent& sample, ThreadKey thread, std::span<const Frame> frames,
                      const SampleContext* context) {
  const EventColumns& columns = *events_[sample.event];
  const std::uint32_t column = sample.is_estimate && columns.estimate ? *columns.estimate : columns.value;
  const std::uint32_t added =
      columns.samples
          ? aggregator_.add(thread, frames, {{*columns.samples, 1}, {column, sample.value}}, context)
          : aggregator_.add(thread, frames, {{column, sample.value}}, context);
  if (options_.has_timeline && columns.samples) aggregator_.add_moment(added, sample.time);
  if (account_) account_->add(sample);
}

ClosedPart ProfileKind::close(Nanoseconds begin, Nanoseconds end, bool is_final, std::uint32_t slow_down) {
  ClosedPart part;
  part.kind = name_;
  part.profile = account_ ? account_->close(aggregator_, begin, end, is_final) : aggregator_.take(begin, end);
  part.visible_columns = visible_columns_;
  part.period_type = part.default_column = first_->label;
  part.period_unit = first_->unit;
  part.period = first_->sample_value() * slow_down;
  return part;
}

}  // namespace ddprof
