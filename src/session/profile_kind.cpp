#include "session/profile_kind.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

std::string_view ProfileKind::name_of(const EventSpec& event) {
  return event.kind == EventSpec::Kind::allocation ? "alloc" : "cpu";
}

ProfileKind::ProfileKind(std::string name, const std::vector<EventSpec>& events, bool has_timeline,
                         const CpuAccountOptions& cpu, Collector& collector, const ProcessTable& processes,
                         const AggregatorBudget& budget)
    : name_(std::move(name)), has_timeline_(has_timeline), aggregator_(lay_out_columns(events), budget) {
  const auto clock =
      std::find_if(columns_.begin(), columns_.end(),
                   [](const std::optional<EventColumns>& event) { return event && event->estimate; });
  if (clock == columns_.end()) return;
  const auto event = static_cast<std::uint32_t>(clock - columns_.begin());
  const CpuAccount::Clocked clocked{.event = event,
                                    .column = (*clock)->value,
                                    .estimate_column = *(*clock)->estimate,
                                    .period = events[event].sample_value()};
  account_.emplace(clocked, cpu, collector, processes);
}

std::vector<Column> ProfileKind::lay_out_columns(const std::vector<EventSpec>& events) {
  std::vector<Column> columns;
  const auto add = [&](std::string type, const std::string& unit) {
    columns.push_back({std::move(type), unit});
    return static_cast<std::uint32_t>(columns.size() - 1);
  };
  for (const EventSpec& event : events) {
    columns_.emplace_back();
    if (name_of(event) != name_) continue;
    EventColumns added;
    if (first_ == nullptr) added.samples = add(name_ == "cpu" ? "samples" : name_ + "_objects", "count");
    if (first_ == nullptr) first_ = &event;
    added.value = add(event.label, event.unit);
    columns_.back() = added;
  }
  visible_columns_ = static_cast<std::uint32_t>(columns.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    if (columns_[i] && events[i].is_clock) columns_[i]->estimate = add("estimate", events[i].unit);
  return columns;
}

void ProfileKind::add(const SampleEvent& sample, ThreadKey thread, std::span<const Frame> frames,
                      const SampleContext* context) {
  const EventColumns& columns = *columns_[sample.event];
  const bool is_scaled = sample.basis != SampleBasis::own_period && columns.estimate;
  const std::uint32_t column = is_scaled ? *columns.estimate : columns.value;
  const std::uint32_t added =
      columns.samples ? aggregator_.add(thread, frames,
                                        {{*columns.samples, sample.count}, {column, sample.value}}, context)
                      : aggregator_.add(thread, frames, {{column, sample.value}}, context);
  if (has_timeline_ && columns.samples) aggregator_.add_moment(added, sample.time);
  if (account_) account_->add(sample);
}

void ProfileKind::add_lost(Pid root, std::int64_t count, std::int64_t value) {
  const Frame frame{.kind = FrameKind::accounted, .loss = Loss::lost};
  const auto columns =
      std::find_if(columns_.begin(), columns_.end(), [](const auto& event) { return event.has_value(); });
  const ThreadKey thread{root, Tid{to_int(root)}};
  aggregator_.add(thread, {&frame, 1}, {{*(*columns)->samples, count}, {(*columns)->value, value}});
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
