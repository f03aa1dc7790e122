#include "profile/split.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ddprof {

bool ProfileCutter::Renumbering::use(std::uint32_t entry) {
  if (numbers_[entry] != kUnused) return false;
  numbers_[entry] = static_cast<std::uint32_t>(used_.size());
  used_.push_back(entry);
  return true;
}

void ProfileCutter::Renumbering::forget() {
  for (std::uint32_t entry : used_) numbers_[entry] = kUnused;
  used_.clear();
}

ProfileCutter::ProfileCutter(const Profile& profile, std::span<const std::uint32_t> share_of_sample,
                             std::size_t shares)
    : from_(profile),
      samples_(share_of_sample.size()),
      ends_(shares + 1),
      strings_(profile.strings.size()),
      mappings_(profile.mappings.size()),
      functions_(profile.functions.size()),
      locations_(profile.locations.size()) {
  for (std::uint32_t share : share_of_sample) ends_[share + 1]++;
  for (std::size_t share = 0; share < shares; ++share) ends_[share + 1] += ends_[share];
  std::vector<std::size_t> next(ends_.begin(), ends_.end() - 1);
  for (std::uint32_t sample = 0; sample < share_of_sample.size(); ++sample)
    samples_[next[share_of_sample[sample]]++] = sample;
}

Profile ProfileCutter::cut(std::size_t share, bool has_comments) {
  made_.strings.clear();
  text(0);
  add_header(has_comments);
  made_.samples.reserve(ends_[share + 1] - ends_[share]);
  for (std::size_t at = ends_[share]; at < ends_[share + 1]; ++at) add_sample(from_.samples[samples_[at]]);
  sort_mappings();
  for (Renumbering* table : {&strings_, &mappings_, &functions_, &locations_}) table->forget();
  return std::exchange(made_, Profile());
}

void ProfileCutter::add_header(bool has_comments) {
  const auto value_type = [&](const ValueType& type) { return ValueType{text(type.type), text(type.unit)}; };
  for (const ValueType& type : from_.value_types) made_.value_types.push_back(value_type(type));
  made_.period_type = value_type(from_.period_type);
  made_.period = from_.period;
  made_.time_ns = from_.time_ns;
  made_.duration_ns = from_.duration_ns;
  made_.default_value_type = text(from_.default_value_type);
  made_.doc_url = text(from_.doc_url);
  made_.time_label = label(from_.time_label);
  for (StringIndex key : from_.context_keys) made_.context_keys.push_back(text(key));
  if (!has_comments) return;
  for (StringIndex comment : from_.comments) made_.comments.push_back(text(comment));
}

void ProfileCutter::add_sample(const ProfileSample& sample) {
  made_.samples.push_back(sample);
  ProfileSample& made = made_.samples.back();
  for (std::uint32_t& entry : made.locations) entry = location(entry);
  for (ProfileLabel& entry : made.labels) entry = label(entry);
}

// As in the whole profile, where programs come first, the main one before all others.
void ProfileCutter::sort_mappings() {
  const std::vector<std::uint32_t>& used = mappings_.used();
  std::vector<std::uint32_t> order(used.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t left, std::uint32_t right) { return used[left] < used[right]; });
  std::vector<ProfileMapping> sorted;
  std::vector<std::uint32_t> place(order.size());
  for (const std::uint32_t at : order) {
    place[at] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(made_.mappings[at]);
  }
  made_.mappings = std::move(sorted);
  for (ProfileLocation& location : made_.locations)
    if (location.mapping != kNoMapping) location.mapping = place[location.mapping];
}

ProfileLabel ProfileCutter::label(const ProfileLabel& from) {
  return {.key = text(from.key), .text = text(from.text), .number = from.number, .unit = text(from.unit)};
}

StringIndex ProfileCutter::text(StringIndex index) {
  if (strings_.use(index)) made_.strings.push_back(from_.strings[index]);
  return strings_[index];
}

std::uint32_t ProfileCutter::location(std::uint32_t index) {
  if (locations_.use(index)) {
    ProfileLocation made = from_.locations[index];
    if (made.mapping != kNoMapping) made.mapping = mapping(made.mapping);
    for (ProfileLine& line : made.lines) line.function = function(line.function);
    made_.locations.push_back(std::move(made));
  }
  return locations_[index];
}

std::uint32_t ProfileCutter::function(std::uint32_t index) {
  if (functions_.use(index)) {
    ProfileFunction made = from_.functions[index];
    made.name = text(made.name);
    made.system_name = text(made.system_name);
    made.file = text(made.file);
    made_.functions.push_back(made);
  }
  return functions_[index];
}

std::uint32_t ProfileCutter::mapping(std::uint32_t index) {
  if (mappings_.use(index)) {
    ProfileMapping made = from_.mappings[index];
    made.path = text(made.path);
    made.build_id = text(made.build_id);
    made_.mappings.push_back(made);
  }
  return mappings_[index];
}

}  // namespace ddprof
