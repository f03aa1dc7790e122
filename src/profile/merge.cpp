#include "profile/merge.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "profile/profile_builder.hpp"
#include "profile/profile_view.hpp"
#include "profile/snapshot.hpp"

namespace ddprof {

// Adds whole profiles to one builder.
class ProfileMerger::Sum {
 public:
  void add_columns(const Profile& shape) {
    for (const ValueType& type : shape.value_types)
      builder_.profile().value_types.push_back(
          builder_.value_type(shape.text(type.type), shape.text(type.unit)));
  }

  void add(const Profile& profile, const MergeRule& rule = {}) {
    const std::vector<Column> columns = columns_of(profile, rule);
    const std::vector<std::uint32_t> locations = add_locations(profile, rule.by_address);
    without_label_ = rule.without_label;
    for (const ProfileSample& sample : profile.samples) {
      const bool is_left_out = std::all_of(columns.begin(), columns.end(), [&](const Column& column) {
        return !column.theirs || column.factor == 0 || sample.values[*column.theirs] == 0;
      });
      // A sample that says nothing may have been meant to be there.
      if (is_left_out && (rule.sums == 0 || rule.snapshots == 0)) continue;
      add_sample(profile, sample, columns, locations);
    }
    if (const ProfileLabel& time = profile.time_label; time.key != 0)
      builder_.profile().time_label =
          builder_.number_label(profile.text(time.key), 0, profile.text(time.unit));
    describe(profile);
  }

  void begin_kind() { ++kind_; }

  // From the first beginning to the last end; the rest as of the last profile.
  void describe(const Profile& profile) {
    Profile& sum = builder_.profile();
    const std::int64_t end = saturating_add(profile.time_ns, profile.duration_ns);
    const std::int64_t last_end = saturating_add(sum.time_ns, sum.duration_ns);
    const bool is_first = !std::exchange(has_profile_, true);
    sum.time_ns = is_first ? profile.time_ns : std::min(sum.time_ns, profile.time_ns);
    sum.duration_ns = saturating_add(is_first ? end : std::max(end, last_end), -sum.time_ns);
    sum.period_type =
        builder_.value_type(profile.text(profile.period_type.type), profile.text(profile.period_type.unit));
    sum.period = profile.period;
    sum.default_value_type = builder_.intern(profile.text(profile.default_value_type));
    sum.doc_url = builder_.intern(profile.text(profile.doc_url));
    sum.comments.clear();
    for (StringIndex comment : profile.comments)
      sum.comments.push_back(builder_.intern(profile.text(comment)));
  }
  // Those that are not there yet.
  void add_comments(const Profile& profile) {
    std::vector<StringIndex>& comments = builder_.profile().comments;
    for (StringIndex comment : profile.comments) {
      const StringIndex text = builder_.intern(profile.text(comment));
      if (std::find(comments.begin(), comments.end(), text) == comments.end()) comments.push_back(text);
    }
  }

  Profile take() && { return std::move(builder_).build(); }

 private:
  struct Key {
    std::vector<std::uint32_t> locations;
    std::vector<std::int64_t> labels;  // four numbers each
    bool is_timed = false;             // times are of their own values
    std::uint32_t kind = 0;

    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.locations, key.labels, key.is_timed, key.kind);
    }
  };

  struct Column {
    std::optional<std::size_t> theirs;
    std::int64_t factor = 1;
  };

  // Which column of `profile` each of ours is.
  std::vector<Column> columns_of(const Profile& profile, const MergeRule& rule) {
    std::vector<Column> columns;
    for (const ValueType& ours : builder_.profile().value_types) {
      auto same = [&](const ValueType& theirs) {
        return profile.text(theirs.type) == builder_.profile().text(ours.type) &&
               profile.text(theirs.unit) == builder_.profile().text(ours.unit);
      };
      auto found = std::find_if(profile.value_types.begin(), profile.value_types.end(), same);
      Column column;
      if (found != profile.value_types.end())
        column.theirs = static_cast<std::size_t>(found - profile.value_types.begin());
      column.factor = is_snapshot(builder_.profile().text(ours.type)) ? rule.snapshots : rule.sums;
      columns.push_back(column);
    }
    return columns;
  }

  std::vector<std::uint32_t> add_locations(const Profile& profile, bool by_address) {
    std::vector<std::uint32_t> mappings;
    for (ProfileMapping mapping : profile.mappings) {
      mapping.path = builder_.intern(profile.text(mapping.path));
      mapping.build_id = builder_.intern(profile.text(mapping.build_id));
      mappings.push_back(builder_.add_mapping(mapping));
    }
    std::vector<std::uint32_t> functions;
    for (const ProfileFunction& function : profile.functions)
      functions.push_back(builder_.add_function(profile.text(function.name),
                                                profile.text(function.system_name),
                                                profile.text(function.file), function.start_line));
    std::vector<std::uint32_t> locations;
    for (const ProfileLocation& location : profile.locations) {
      std::vector<ProfileLine> lines = location.lines;
      for (ProfileLine& line : lines) line.function = functions[line.function];
      const std::uint32_t mapping = location.mapping == kNoMapping ? kNoMapping : mappings[location.mapping];
      const auto known = by_address && mapping != kNoMapping
                             ? by_address_.find({mapping, location.address.value})
                             : by_address_.end();
      locations.push_back(known != by_address_.end()
                              ? known->second
                              : builder_.add_location(mapping, location.address, lines));
      by_address_.try_emplace({mapping, location.address.value}, locations.back());
    }
    return locations;
  }

  void add_sample(const Profile& profile, const ProfileSample& sample, const std::vector<Column>& columns,
                  const std::vector<std::uint32_t>& locations) {
    Key key{.is_timed = !sample.times.empty(), .kind = kind_};
    for (std::uint32_t location : sample.locations) key.locations.push_back(locations[location]);
    std::vector<ProfileLabel> labels = sample.labels;
    if (!without_label_.empty())
      std::erase_if(labels,
                    [&](const ProfileLabel& label) { return profile.text(label.key) == without_label_; });
    for (ProfileLabel& label : labels) {
      label.key = builder_.intern(profile.text(label.key));
      label.text = builder_.intern(profile.text(label.text));
      label.unit = builder_.intern(profile.text(label.unit));
      key.labels.insert(key.labels.end(), {label.key, label.text, label.number, label.unit});
    }
    auto& samples = builder_.profile().samples;
    auto [known, is_new] = samples_.try_emplace(std::move(key), samples.size());
    if (is_new)
      samples.push_back({known->first.locations, std::vector<std::int64_t>(columns.size(), 0), labels, {}});
    ProfileSample& sum = samples[known->second];
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto& [theirs, factor] = columns[i];
      if (!theirs || factor == 0) continue;
      const std::int64_t value = sample.values[*theirs];
      const std::int64_t least = std::numeric_limits<std::int64_t>::min();
      sum.values[i] = saturating_add(sum.values[i], factor > 0 ? value : -std::max(value, least + 1));
    }
    add_times(sample, sum);
  }

  static void add_times(const ProfileSample& sample, ProfileSample& sum) {
    sum.times.insert(sum.times.end(), sample.times.begin(), sample.times.end());
    sum.events += sample.events;
  }

  ProfileBuilder builder_;
  bool has_profile_ = false;
  std::uint32_t kind_ = 0;
  std::string_view without_label_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> by_address_;  // of a mapping
  absl::flat_hash_map<Key, std::size_t> samples_;
};

ProfileMerger::ProfileMerger(const Profile& shape) : sum_(std::make_unique<Sum>()) {
  sum_->add_columns(shape);
}
ProfileMerger::ProfileMerger(ProfileMerger&&) noexcept = default;
ProfileMerger& ProfileMerger::operator=(ProfileMerger&&) noexcept = default;
ProfileMerger::~ProfileMerger() = default;

void ProfileMerger::add(const Profile& profile, const MergeRule& rule) { sum_->add(profile, rule); }

Profile ProfileMerger::take() && { return std::move(*sum_).take(); }

Profile ProfileMerger::join_kinds(std::span<const Profile* const> kinds) {
  Sum sum;
  for (const Profile* kind : kinds) sum.add_columns(*kind);
  for (const Profile* kind : kinds) {
    sum.begin_kind();
    sum.add(*kind);
  }
  sum.describe(*kinds.front());
  for (const Profile* kind : kinds) sum.add_comments(*kind);
  return std::move(sum).take();
}

Profile merge(const Profile& earlier, const Profile& later) {
  ProfileMerger merger(later);
  merger.add(earlier, {.snapshots = 0});
  merger.add(later);
  return std::move(merger).take();
}

}  // namespace ddprof
