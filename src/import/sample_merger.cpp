#include "import/sample_merger.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

void SampleMerger::label_thread(std::uint32_t thread, std::vector<ProfileLabel> labels) {
  if (labels_.size() <= thread) labels_.resize(std::size_t{thread} + 1);
  labels_[thread] = std::move(labels);
}

bool SampleMerger::add(std::uint32_t thread, std::span<const std::uint32_t> locations, std::size_t column,
                       std::int64_t value) {
  if (!budget_.take(locations.size_bytes())) return false;
  std::uint64_t hash = thread;
  for (const std::uint32_t location : locations) hash = hash_mix(hash, location);
  std::uint32_t at = index_.find(hash, [&](std::uint32_t position) {
    const Entry& entry = entries_[position];
    return entry.thread == thread &&
           std::equal(locations.begin(), locations.end(), entry.locations.begin(), entry.locations.end());
  });
  if (at == DenseIndex::kNotFound) {
    const std::size_t labels = thread < labels_.size() ? labels_[thread].size() : 0;
    if (!budget_.take(sizeof(Entry) + sizeof(ProfileSample) + labels * sizeof(ProfileLabel))) return false;
    at = index_.append(hash);
    entries_.push_back({thread, {locations.begin(), locations.end()}, {}});
  }
  std::vector<std::int64_t>& values = entries_[at].values;
  if (values.size() <= column) {
    if (!budget_.take((column + 1 - values.size()) * sizeof(std::int64_t))) return false;
    values.resize(column + 1);
  }
  values[column] = saturating_add(values[column], value);
  return true;
}

void SampleMerger::move_into(ProfileBuilder& builder, std::size_t columns) && {
  for (Entry& entry : entries_) {
    entry.values.resize(columns);
    builder.add_sample({std::move(entry.locations), std::move(entry.values),
                        entry.thread < labels_.size() ? labels_[entry.thread] : std::vector<ProfileLabel>()});
  }
  entries_.clear();
}

namespace {

// Numbers are numbers, as in the profiles that we record.
void add_number_or_text(std::vector<ProfileLabel>& labels, ProfileBuilder& builder, std::string_view key,
                        std::string_view text) {
  if (text.empty()) return;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number != 0;
  labels.push_back(is_number ? builder.number_label(key, number) : builder.text_label(key, text));
}

}  // namespace

std::optional<std::size_t> find_or_add_column(ProfileBuilder& builder, std::string_view type,
                                              std::string_view unit) {
  std::vector<ValueType>& columns = builder.profile().value_types;
  const ValueType wanted = builder.value_type(type, unit);
  for (std::size_t at = 0; at < columns.size(); ++at) {
    if (columns[at].type == wanted.type && columns[at].unit == wanted.unit) return at;
  }
  if (columns.size() == kMaxColumns) return std::nullopt;
  columns.push_back(wanted);
  return columns.size() - 1;
}

std::vector<ProfileLabel> thread_labels(ProfileBuilder& builder, std::string_view thread,
                                        std::string_view tid, std::string_view process,
                                        std::string_view pid) {
  std::vector<ProfileLabel> labels;
  add_number_or_text(labels, builder, kThreadIdLabel, tid);
  if (!thread.empty()) labels.push_back(builder.text_label(kThreadNameLabel, thread));
  add_number_or_text(labels, builder, kProcessIdLabel, pid);
  if (!process.empty()) labels.push_back(builder.text_label(kProcessNameLabel, process));
  return labels;
}

}  // namespace ddprof
