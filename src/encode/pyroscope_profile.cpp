#include "encode/pyroscope_profile.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

bool is_of_label_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Other texts in place of those that Pyroscope refuses; each is made once.
class Replacements {
 public:
  Replacements(Profile& profile, std::string (*replace)(std::string_view))
      : profile_(profile), replace_(replace) {}

  StringIndex operator()(StringIndex text) {
    const auto [known, is_new] = known_.try_emplace(text, text);
    if (!is_new) return known->second;
    std::string other = replace_(profile_.text(text));
    if (other == profile_.text(text)) return text;
    profile_.strings.push_back(std::move(other));
    return known->second = static_cast<StringIndex>(profile_.strings.size() - 1);
  }

 private:
  Profile& profile_;
  std::string (*replace_)(std::string_view);
  absl::flat_hash_map<StringIndex, StringIndex> known_;
};

std::string without_hyphens(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string short_enough(std::string_view text) { return std::string(text.substr(0, kMaxPyroscopeValue)); }

void rename_types(Profile& profile) {
  Replacements renamed(profile, without_hyphens);
  for (ValueType& type : profile.value_types) type.type = renamed(type.type);
  profile.period_type.type = renamed(profile.period_type.type);
  profile.default_value_type = renamed(profile.default_value_type);
}

// Every set of labels is a series of its own: numbers, times, traces, and what threads make up would be no
// end of them. The endpoint of a request is one of a few.
void keep_labels_that_are_texts(Profile& profile) {
  const auto is_too_fine = [&keys = profile.context_keys, &profile](StringIndex key) {
    return profile.text(key) == kTraceIdLabel || std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  Replacements names(profile, pyroscope_label_name), values(profile, short_enough);
  const auto is_before = [&](const ProfileLabel& left, const ProfileLabel& right) {
    return profile.text(left.key) < profile.text(right.key);
  };
  const auto is_same_key = [&](const ProfileLabel& left, const ProfileLabel& right) {
    return profile.text(left.key) == profile.text(right.key);
  };
  for (ProfileSample& sample : profile.samples) {
    sample.times.clear();
    sample.events = 0;
    std::vector<ProfileLabel>& labels = sample.labels;
    std::erase_if(labels,
                  [&](const ProfileLabel& label) { return label.text == 0 || is_too_fine(label.key); });
    for (ProfileLabel& label : labels) label = {.key = names(label.key), .text = values(label.text)};
    std::stable_sort(labels.begin(), labels.end(), is_before);
    labels.erase(std::unique(labels.begin(), labels.end(), is_same_key), labels.end());
  }
}

std::uint64_t hash_of_identity(const ProfileSample& sample) {
  std::uint64_t hash = sample.locations.size();
  for (const std::uint32_t location : sample.locations) hash = hash_mix(hash, location);
  for (const ProfileLabel& label : sample.labels) hash = hash_mix(hash_mix(hash, label.key), label.text);
  return hash;
}

bool has_same_identity(const ProfileSample& left, const ProfileSample& right) {
  const auto is_same_label = [](const ProfileLabel& one, const ProfileLabel& other) {
    return one.key == other.key && one.text == other.text;
  };
  return left.locations == right.locations &&
         std::equal(left.labels.begin(), left.labels.end(), right.labels.begin(), right.labels.end(),
                    is_same_label);
}

void add_up_equal_samples(Profile& profile) {
  DenseIndex index;
  std::vector<ProfileSample> sums;
  for (ProfileSample& sample : profile.samples) {
    const std::uint64_t hash = hash_of_identity(sample);
    const std::uint32_t at =
        index.find(hash, [&](std::uint32_t position) { return has_same_identity(sums[position], sample); });
    if (at == DenseIndex::kNotFound) {
      index.append(hash);
      sums.push_back(std::move(sample));
      continue;
    }
    std::vector<std::int64_t>& values = sums[at].values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = saturating_add(values[i], sample.values[i]);
  }
  profile.samples = std::move(sums);
}

}  // namespace

std::string pyroscope_label_name(std::string_view text) {
  std::string name(text.substr(0, kMaxPyroscopeValue / 2));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_of_label_name(c); }, '_');
  const bool needs_start = name.empty() || (name[0] >= '0' && name[0] <= '9');
  return needs_start ? "_" + name : name;
}

Profile for_pyroscope(Profile profile) {
  rename_types(profile);
  keep_labels_that_are_texts(profile);
  add_up_equal_samples(profile);
  return profile;
}

}  // namespace ddprof
