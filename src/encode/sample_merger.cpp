#include "encode/sample_merger.hpp"

#include <algorithm>
#include <utility>

#include "profile/hash.hpp"
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

}  // namespace ddprof
