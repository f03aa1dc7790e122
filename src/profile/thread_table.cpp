#include "profile/thread_table.hpp"

#include <fmt/format.h>

#include <array>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"

namespace ddprof {

namespace {

constexpr std::array<std::string_view, 4> kWho{kProcessNameLabel, kProcessIdLabel, kThreadNameLabel,
                                               kThreadIdLabel};
constexpr std::size_t kProcessParts = 2;
constexpr std::uint8_t kNotWho = kWho.size();

struct LabelValue {
  StringIndex text = 0;
  std::int64_t number = 0;
  bool operator==(const LabelValue&) const = default;
};

using Who = std::array<LabelValue, kWho.size()>;

std::uint64_t hash_who(std::span<const LabelValue> who) {
  std::uint64_t hash = 0;
  for (const LabelValue& value : who)
    hash = hash_mix(hash_mix(hash, value.text), static_cast<std::uint64_t>(value.number));
  return hash;
}

// Which part of a Who the label with this key is, by string: a foreign table may hold a text twice.
std::vector<std::uint8_t> label_parts(const Profile& profile) {
  std::vector<std::uint8_t> parts(profile.strings.size(), kNotWho);
  for (std::size_t string = 0; string < parts.size(); ++string) {
    for (std::uint8_t part = 0; part < kWho.size(); ++part) {
      if (profile.strings[string] == kWho[part]) parts[string] = part;
    }
  }
  return parts;
}

Who who_of(const ProfileSample& sample, std::span<const std::uint8_t> parts) {
  Who who{};
  for (const ProfileLabel& label : sample.labels) {
    const std::uint8_t part = parts[label.key];
    if (part != kNotWho) who[part] = {label.text, label.text != 0 ? 0 : label.number};
  }
  return who;
}

std::string written(const Profile& profile, const LabelValue& value) {
  if (value.text != 0) return std::string(profile.text(value.text));
  return value.number != 0 ? fmt::format("{}", value.number) : std::string();
}

// Numbers distinct keys in order of appearance.
template <typename Key>
class Numbers {
 public:
  // The number of `key`, and whether it is new.
  std::pair<std::uint32_t, bool> of(const Key& key) {
    const std::uint64_t hash = hash_who(key);
    const std::uint32_t known = index_.find(hash, [&](std::uint32_t at) { return keys_[at] == key; });
    if (known != DenseIndex::kNotFound) return {known, false};
    keys_.push_back(key);
    return {index_.append(hash), true};
  }

 private:
  DenseIndex index_;
  std::vector<Key> keys_;
};

}  // namespace

ThreadTable::ThreadTable(const Profile& profile) {
  const std::vector<std::uint8_t> parts = label_parts(profile);
  Numbers<Who> threads;
  Numbers<std::array<LabelValue, kProcessParts>> processes;
  by_sample_.reserve(profile.samples.size());
  for (const ProfileSample& sample : profile.samples) {
    const Who who = who_of(sample, parts);
    const auto [thread, is_new_thread] = threads.of(who);
    by_sample_.push_back(thread);
    if (!is_new_thread) continue;
    const auto [process, is_new_process] = processes.of({who[0], who[1]});
    if (is_new_process) processes_.push_back({written(profile, who[0]), written(profile, who[1])});
    threads_.push_back({process, written(profile, who[2]), written(profile, who[3])});
  }
}

}  // namespace ddprof
