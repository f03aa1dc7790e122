#include "encode/datadog_profile.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/labels.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kCutMarker = "[truncated: only 599 frames are sent]";
static_assert(kMaxDatadogFrames == 600);

StringIndex append_string(Profile& profile, std::string_view text) {
  profile.strings.emplace_back(text);
  return static_cast<StringIndex>(profile.strings.size() - 1);
}

void rename_columns(Profile& profile) {
  const bool is_cpu_profile =
      std::any_of(profile.value_types.begin(), profile.value_types.end(),
                  [&](const ValueType& type) { return profile.text(type.type) == "cpu"; });
  const StringIndex time = append_string(profile, "cpu-time");
  const StringIndex count = append_string(profile, is_cpu_profile ? "cpu-samples" : "sample");
  const auto renamed = [&](StringIndex name) {
    if (profile.text(name) == "cpu") return time;
    return profile.text(name) == "samples" ? count : name;
  };
  for (ValueType& type : profile.value_types) type.type = renamed(type.type);
  profile.period_type.type = renamed(profile.period_type.type);
  profile.default_value_type = renamed(profile.default_value_type);
}

// Ours counts first, as pprof's tools like it.
void put_the_value_first(Profile& profile) {
  if (profile.value_types.size() < 2 || profile.text(profile.value_types[0].type) != "samples") return;
  std::swap(profile.value_types[0], profile.value_types[1]);
  for (ProfileSample& sample : profile.samples) std::swap(sample.values[0], sample.values[1]);
}

// pprof cannot tell an empty text from the number 0, and a key has either texts or numbers.
bool is_name_of_nobody(const Profile& profile, const ProfileLabel& label) {
  const std::string_view key = profile.text(label.key);
  return label.text == 0 && (key == kThreadNameLabel || key == kProcessNameLabel);
}

void rename_labels(Profile& profile) {
  const StringIndex process_id = append_string(profile, "process_id");
  for (ProfileSample& sample : profile.samples) {
    std::erase_if(sample.labels,
                  [&](const ProfileLabel& label) { return is_name_of_nobody(profile, label); });
    for (ProfileLabel& label : sample.labels) {
      if (profile.text(label.key) == kProcessIdLabel) label.key = process_id;
      if (profile.text(label.key) == kEndTimestampLabel) label.unit = 0;
    }
  }
}

std::uint32_t append_marker(Profile& profile, std::string_view name) {
  const StringIndex text = append_string(profile, name);
  profile.functions.push_back({.name = text, .system_name = text});
  const auto function = static_cast<std::uint32_t>(profile.functions.size() - 1);
  profile.locations.push_back({.lines = {{.function = function}}});
  return static_cast<std::uint32_t>(profile.locations.size() - 1);
}

// Gives each inlined call a location of its own. Returns where the calls of each former location are: its own
// place has the innermost, the others follow from there.
std::vector<std::uint32_t> split_inlined_calls(Profile& profile) {
  const std::size_t count = profile.locations.size();
  std::vector<std::uint32_t> others(count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    others[i] = static_cast<std::uint32_t>(profile.locations.size());
    const std::vector<ProfileLine> lines = std::move(profile.locations[i].lines);
    for (std::size_t call = 1; call < lines.size(); ++call) {
      profile.locations.push_back(
          {profile.locations[i].mapping, profile.locations[i].address, {lines[call]}});
    }
    profile.locations[i].lines.assign(lines.begin(), lines.begin() + (lines.empty() ? 0 : 1));
  }
  others[count] = static_cast<std::uint32_t>(profile.locations.size());
  return others;
}

void expand_stacks(Profile& profile) {
  const std::vector<std::uint32_t> others = split_inlined_calls(profile);
  std::optional<std::uint32_t> marker;
  for (ProfileSample& sample : profile.samples) {
    std::vector<std::uint32_t> stack;
    for (std::uint32_t location : sample.locations) {
      stack.push_back(location);
      for (std::uint32_t call = others[location]; call < others[location + 1]; ++call) stack.push_back(call);
      if (stack.size() > kMaxDatadogFrames) break;
    }
    if (stack.size() > kMaxDatadogFrames) {
      stack.resize(kMaxDatadogFrames);
      if (!marker) marker = append_marker(profile, kCutMarker);
      stack.back() = *marker;
    }
    sample.locations = std::move(stack);
  }
}

}  // namespace

Profile for_datadog(Profile profile) {
  put_the_value_first(profile);
  rename_columns(profile);
  rename_labels(profile);
  expand_stacks(profile);
  return profile;
}

}  // namespace ddprof
