#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "profile/profile.hpp"
#include "report/live_growth.hpp"

namespace ddprof {

// "2026-11-16T06:57:55.5Z", "2026-11-16T07:57:55+01:00": Unix time.
std::optional<Nanoseconds> parse_rfc3339(std::string_view text);

// Such a time, or how long before `now`: 30s, 10m, 2h, 1d.
Result<Nanoseconds> parse_moment(std::string_view text, Nanoseconds now);

// A profile of any format that we read; "-" is standard input.
Result<Profile> load_profile(const std::string& path);

// A profile on the disk, and what is known of it without reading it all, or after that.
struct StoredProfile {
  std::string path;
  std::string service;  // empty: unknown
  std::uint64_t bytes = 0;
  Nanoseconds start{}, end{};
  std::optional<std::int64_t> cpu;  // nanoseconds; none: the profile is of something else
};

// Which of several profiles are meant.
struct ProfileChoice {
  std::optional<Nanoseconds> since, until;
  std::string service;

  [[nodiscard]] bool is_all() const { return !since && !until && service.empty(); }
  [[nodiscard]] bool has(const StoredProfile& profile) const;
};

// The profiles of a folder, the newest last: those of its index, and others, by their extension, which are
// read to learn what they are. Links are not followed.
Result<std::vector<StoredProfile>> profiles_in(const std::string& folder);

// What is known of one file; reads it.
Result<StoredProfile> inspect_profile(const std::string& path);

// Several files as one profile. What a column tells of the end of a period (live bytes) is that of the last
// profile of each program.
struct MergedProfile {
  Profile profile;
  // Of live bytes, from the end of the first profile to that of the last, if they are of different times.
  std::optional<LiveGrowth> growth;
};
enum class MergeView : std::uint8_t {
  sum,
  growth,  // only what more is alive at the end of the last profile than of the first, by stack
};
// Fails when they do not have the same values, or do not tell of growth.
Result<MergedProfile> load_merged(const std::vector<std::string>& paths, MergeView view = MergeView::sum);

}  // namespace ddprof
