#include "encode/datadog_profile.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/pprof_sample.hpp"
#include "profile/profile.hpp"

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
bool counts_first(const Profile& profile) {
  return profile.value_types.size() >= 2 && profile.text(profile.value_types[0].type).ends_with("samples");
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

// What labels with this key become.
enum class KeyKind : std::uint8_t { plain, process, name, time };

std::vector<KeyKind> kinds_of_strings(const Profile& profile) {
  std::vector<KeyKind> kinds;
  for (const std::string& text : profile.strings) {
    KeyKind kind = KeyKind::plain;
    if (text == kProcessIdLabel) kind = KeyKind::process;
    if (text == kThreadNameLabel || text == kProcessNameLabel) kind = KeyKind::name;
    if (text == kEndTimestampLabel) kind = KeyKind::time;
    kinds.push_back(kind);
  }
  return kinds;
}

// Everything but the samples.
Profile tables_of(const Profile& profile) {
  Profile tables;
  tables.value_types = profile.value_types;
  tables.period_type = profile.period_type;
  tables.period = profile.period;
  tables.time_ns = profile.time_ns;
  tables.duration_ns = profile.duration_ns;
  tables.default_value_type = profile.default_value_type;
  tables.mappings = profile.mappings;
  tables.locations = profile.locations;
  tables.functions = profile.functions;
  tables.time_label = profile.time_label;
  tables.comments = profile.comments;
  tables.doc_url = profile.doc_url;
  tables.strings = profile.strings;
  return tables;
}

// Makes the samples anew, one by one: they are never there twice.
class DatadogSamples {
 public:
  DatadogSamples(const Profile& from, Profile& to)
      : kinds_(kinds_of_strings(from)),
        time_unit_(datadog_time_unit_ns(from)),
        swaps_values_(counts_first(from)),
        to_(to) {
    if (swaps_values_) std::swap(to_.value_types[0], to_.value_types[1]);
    rename_columns(to_);
    to_.time_label.unit = 0;
    process_key_ = append_string(to_, "process_id");
    others_ = split_inlined_calls(to_);
  }

  // Reuses the memory that `made` has.
  void make(const ProfileSample& sample, ProfileSample& made) {
    expand(sample.locations, made.locations);
    made.values.assign(sample.values.begin(), sample.values.end());
    if (swaps_values_) std::swap(made.values[0], made.values[1]);
    made.labels.clear();
    for (const ProfileLabel& label : sample.labels) add_label(label, made.labels);
    made.times.clear();
    for (std::int64_t time : sample.times) made.times.push_back(rounded(time));
    made.events = sample.events;
  }

 private:
  void expand(const std::vector<std::uint32_t>& locations, std::vector<std::uint32_t>& stack) {
    stack.clear();
    for (std::uint32_t location : locations) {
      stack.push_back(location);
      for (std::uint32_t call = others_[location]; call < others_[location + 1]; ++call)
        stack.push_back(call);
      if (stack.size() > kMaxDatadogFrames) break;
    }
    if (stack.size() <= kMaxDatadogFrames) return;
    stack.resize(kMaxDatadogFrames);
    if (!marker_) marker_ = append_marker(to_, kCutMarker);
    stack.back() = *marker_;
  }

  void add_label(ProfileLabel label, std::vector<ProfileLabel>& labels) const {
    const KeyKind kind = kinds_[label.key];
    // pprof cannot tell an empty text from the number 0, and a key has either texts or numbers.
    if (kind == KeyKind::name && label.text == 0) return;
    if (kind == KeyKind::process) label.key = process_key_;
    if (kind == KeyKind::time) {
      label.unit = 0;
      label.number = rounded(label.number);
    }
    labels.push_back(label);
  }

  // Not to before the period.
  [[nodiscard]] std::int64_t rounded(std::int64_t time) const {
    return std::max(time / time_unit_ * time_unit_, std::min(time, to_.time_ns));
  }

  std::vector<KeyKind> kinds_;
  std::int64_t time_unit_;
  bool swaps_values_;
  Profile& to_;
  StringIndex process_key_ = 0;
  std::vector<std::uint32_t> others_;
  std::optional<std::uint32_t> marker_;
};

}  // namespace

std::int64_t datadog_time_unit_ns(const Profile& profile) {
  constexpr std::int64_t kUsual = 1 << 14, kGreatest = 1 << 20, kPartsOfPeriod = 16;
  if (profile.text(profile.period_type.unit) != "nanoseconds") return kUsual;
  const std::int64_t part = std::clamp<std::int64_t>(profile.period / kPartsOfPeriod, 1, kGreatest);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(part)));
}

Profile for_datadog(const Profile& profile) {
  Profile made = tables_of(profile);
  DatadogSamples samples(profile, made);
  made.samples.resize(profile.samples.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) samples.make(profile.samples[i], made.samples[i]);
  return made;
}

std::string encode_for_datadog(const Profile& profile) {
  Profile tables = tables_of(profile);
  DatadogSamples samples(profile, tables);
  return encode_pprof(tables, [&](PprofSampleWriter& writer) {
    writer.reserve_for(profile.samples);
    ProfileSample made;
    for (const ProfileSample& sample : profile.samples) {
      samples.make(sample, made);
      writer.write(made);
    }
  });
}

}  // namespace ddprof
