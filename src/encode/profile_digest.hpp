#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "profile/labels.hpp"
#include "profile/profile_view.hpp"

namespace ddprof::testing_data {

// What a profile says, whatever its tables look like: for each thread and stack (root first, by name) the
// sums of its columns.
using Digest = std::map<std::string, std::vector<std::int64_t>>;

inline std::string stack_text(const FrameTable& names, const ProfileSample& sample) {
  std::string text;
  for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
    const auto frames = names.frames(*location);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += (text.empty() ? "" : ";") + names[*frame].name;
  }
  return text;
}

inline Digest digest(const Profile& profile, bool with_threads = true) {
  const FrameTable names(profile);
  Digest digest;
  for (const ProfileSample& sample : profile.samples) {
    std::string key = stack_text(names, sample);
    if (with_threads) {
      key += fmt::format(" in {} {} of {} {}", label_text(profile, sample, kThreadNameLabel),
                         label_text(profile, sample, kThreadIdLabel),
                         label_text(profile, sample, kProcessNameLabel),
                         label_text(profile, sample, kProcessIdLabel));
    }
    std::vector<std::int64_t>& sums = digest[key];
    sums.resize(profile.value_types.size());
    for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += sample.values[at];
  }
  return digest;
}

// The same with the default column alone, for formats that hold no other.
inline Digest default_digest(const Profile& profile, bool with_threads = true) {
  const std::size_t column = default_column(profile).value_or(0);
  Digest all = digest(profile, with_threads);
  for (auto& [key, sums] : all) sums = {sums.at(column)};
  return all;
}

inline std::vector<std::string> column_names(const Profile& profile) {
  std::vector<std::string> names;
  for (const ValueType& type : profile.value_types)
    names.push_back(fmt::format("{}/{}", profile.text(type.type), profile.text(type.unit)));
  return names;
}

}  // namespace ddprof::testing_data
