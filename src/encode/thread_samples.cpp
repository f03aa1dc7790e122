#include "encode/thread_samples.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

// A thread may change its name: its number says who it is. Foreign profiles may have nothing but names.
std::string identity_of(const ThreadSamples& thread) {
  std::string identity = thread.pid.empty() ? thread.process : thread.pid;
  identity += '\0';
  identity += thread.tid.empty() ? thread.name : thread.tid;
  return identity;
}

ThreadSamples labelled_thread(const Profile& profile, const ProfileSample& sample) {
  ThreadSamples thread;
  thread.name = label_text(profile, sample, kThreadNameLabel);
  thread.tid = label_text(profile, sample, kThreadIdLabel);
  thread.process = label_text(profile, sample, kProcessNameLabel);
  thread.pid = label_text(profile, sample, kProcessIdLabel);
  return thread;
}

std::int64_t total_of(const Profile& profile, const ThreadSamples& thread) {
  const std::optional<std::size_t> column = default_column(profile);
  std::int64_t total = 0;
  for (std::uint32_t index : thread.samples) {
    if (column) total = saturating_add(total, profile.samples[index].values[*column]);
  }
  return total;
}

void order_by_time(const Profile& profile, ThreadSamples& thread) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> times;
  for (std::uint32_t index : thread.samples) {
    const std::optional<std::int64_t> time = sample_time_ns(profile, profile.samples[index]);
    if (!time) return;
    times.emplace_back(*time, index);
  }
  std::sort(times.begin(), times.end());
  thread.has_times = true;
  thread.samples.clear();
  for (const auto& [time, index] : times) thread.samples.push_back(index);
}

void order_by_weight(const Profile& profile, std::vector<ThreadSamples>& threads) {
  struct Place {
    std::int64_t process_total, total;
    std::uint32_t process, thread;  // in order of appearance
  };
  absl::flat_hash_map<std::string, std::pair<std::int64_t, std::uint32_t>> processes;
  std::vector<Place> places;
  const auto process_of = [](const ThreadSamples& thread) {
    return thread.pid.empty() ? thread.process : thread.pid;
  };
  for (std::uint32_t index = 0; index < threads.size(); ++index) {
    auto [process, is_new] = processes.try_emplace(process_of(threads[index]), 0, index);
    places.push_back({0, total_of(profile, threads[index]), process->second.second, index});
    process->second.first = saturating_add(process->second.first, places.back().total);
  }
  for (Place& place : places) place.process_total = processes[process_of(threads[place.thread])].first;
  std::sort(places.begin(), places.end(), [](const Place& left, const Place& right) {
    return std::tie(right.process_total, left.process, right.total, left.thread) <
           std::tie(left.process_total, right.process, left.total, right.thread);
  });
  std::vector<ThreadSamples> ordered;
  for (const Place& place : places) ordered.push_back(std::move(threads[place.thread]));
  threads = std::move(ordered);
}

}  // namespace

std::optional<std::int64_t> sample_time_ns(const Profile& profile, const ProfileSample& sample) {
  for (const ProfileLabel& label : sample.labels) {
    if (label.text == 0 && label.number > 0 && profile.text(label.key) == kEndTimestampLabel)
      return label.number;
  }
  return std::nullopt;
}

std::vector<ThreadSamples> samples_by_thread(const Profile& profile) {
  absl::flat_hash_map<std::string, std::size_t> known;
  std::vector<ThreadSamples> threads;
  for (std::uint32_t index = 0; index < profile.samples.size(); ++index) {
    ThreadSamples thread = labelled_thread(profile, profile.samples[index]);
    const auto [entry, is_new] = known.try_emplace(identity_of(thread), threads.size());
    if (is_new) threads.push_back(std::move(thread));
    threads[entry->second].samples.push_back(index);
  }
  for (ThreadSamples& thread : threads) order_by_time(profile, thread);
  order_by_weight(profile, threads);
  return threads;
}

}  // namespace ddprof
