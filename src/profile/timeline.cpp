#include "profile/timeline.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

void SampleParts::begin(const ProfileSample& sample) {
  sample_ = &sample;
  events_ = std::max({sample.events, static_cast<std::uint32_t>(sample.times.size()), 1U});
  done_ = 0;
  shares_.clear();
  for (std::int64_t whole : sample.values) shares_.emplace_back(whole, events_);
  given_.assign(sample.values.size(), 0);
  values_.resize(sample.values.size());
}

bool SampleParts::next() {
  if (done_ == events_) return false;
  const bool is_timed = done_ < sample_->times.size();
  time_ = is_timed ? std::optional(sample_->times[done_]) : std::nullopt;
  done_ = is_timed ? done_ + 1 : events_;
  for (std::size_t column = 0; column < values_.size(); ++column) {
    const std::int64_t due = shares_[column].of_first(done_);
    values_[column] = due - std::exchange(given_[column], due);
  }
  return true;
}

bool has_timeline(const Profile& profile) {
  return std::any_of(profile.samples.begin(), profile.samples.end(),
                     [](const ProfileSample& sample) { return !sample.times.empty(); });
}

Profile with_a_sample_per_event(Profile profile) {
  const std::vector<ProfileSample> samples = std::exchange(profile.samples, {});
  SampleParts parts;
  for (const ProfileSample& sample : samples) {
    parts.begin(sample);
    while (parts.next()) {
      ProfileSample& part =
          profile.samples.emplace_back(ProfileSample{sample.locations, parts.values(), sample.labels});
      if (!parts.time()) continue;
      part.labels.push_back(profile.time_label);
      part.labels.back().number = *parts.time();
    }
  }
  return profile;
}

}  // namespace ddprof
