#include "cli/stored_profiles.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/read_file.hpp"
#include "encode/output_format.hpp"
#include "export/profile_folder.hpp"
#include "import/import_profile.hpp"
#include "import/json_document.hpp"
#include "profile/merge.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"
#include "profile/snapshot.hpp"

namespace ddprof {

namespace {

// Takes digits off the front: exactly `count` of them.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  int number = 0;
  if (text.size() < count) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + count, number);
  if (error != std::errc{} || end != text.data() + count || number < 0) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

bool take_letter(std::string_view& text, std::string_view letters) {
  if (text.empty() || letters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".25": up to nine digits count.
Nanoseconds take_fraction(std::string_view& text) {
  std::int64_t nanoseconds = 0, scale = 100'000'000;
  if (text.empty() || text.front() != '.') return {};
  text.remove_prefix(1);
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), scale /= 10)
    nanoseconds += (text.front() - '0') * scale;
  return Nanoseconds(nanoseconds);
}

// "Z" or "+01:00"
std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  if (take_letter(text, "Zz")) return std::chrono::minutes(0);
  const bool is_west = !text.empty() && text.front() == '-';
  if (!take_letter(text, "+-")) return std::nullopt;
  const auto hours = take_digits(text, 2);
  if (!hours || !take_letter(text, ":")) return std::nullopt;
  const auto minutes = take_digits(text, 2);
  if (!minutes) return std::nullopt;
  const std::chrono::minutes offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return is_west ? -offset : offset;
}

}  // namespace

std::optional<Nanoseconds> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const auto years = take_digits(text, 4);
  if (!years || !take_letter(text, "-")) return std::nullopt;
  const auto months = take_digits(text, 2);
  if (!months || !take_letter(text, "-")) return std::nullopt;
  const auto days_of_month = take_digits(text, 2);
  if (!days_of_month || !take_letter(text, "Tt ")) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || !take_letter(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || !take_letter(text, ":")) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const Nanoseconds fraction = take_fraction(text);
  const auto offset = take_offset(text);
  const year_month_day date(year(*years), month(static_cast<unsigned>(*months)),
                            day(static_cast<unsigned>(*days_of_month)));
  constexpr int kFirstYear = 1900, kLastYear = 2200;  // beyond, nanoseconds overflow
  if (!offset || !text.empty() || !date.ok() || *years < kFirstYear || *years > kLastYear)
    return std::nullopt;
  return sys_days(date).time_since_epoch() + hours(*hour) + minutes(*minute) + seconds(*second) - *offset +
         fraction;
}

Result<Nanoseconds> parse_moment(std::string_view text, Nanoseconds now) {
  if (const auto moment = parse_rfc3339(text)) return *moment;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t seconds = unit == "s"   ? 1
                               : unit == "m" ? 60
                               : unit == "h" ? 3600
                               : unit == "d" ? 86400
                                             : 0;
  constexpr std::int64_t kMost = 100LL * 366 * 86400;  // a century
  if (error == std::errc{} && seconds > 0 && count >= 0 && count <= kMost / seconds)
    return now - std::chrono::seconds(count * seconds);
  return make_error(ErrorCode::invalid_argument,
                    "{}: not a time; write 30s, 10m, 2h, 1d or 2026-11-16T06:57:55Z", text);
}

Result<Profile> load_profile(const std::string& path) {
  constexpr std::size_t kMaxProfileBytes = std::size_t{1} << 30U;
  const auto input = read_input(path, kMaxProfileBytes);
  if (!input) return with_hint(input.error(), "ddprof list shows the profiles that are stored here");
  const std::string& bytes = *input;
  auto profile = import_profile(std::as_bytes(std::span(bytes)));
  if (!profile) profile.error().message.insert(0, fmt::format("read {}: ", path));
  return profile;
}

namespace {

constexpr std::string_view kCpuSum = "cpu/nanoseconds";
constexpr std::string_view kServiceNote = "service: ";

// "shop" of "shop-12-000003.pb.gz": what is in front of the first part that begins with a digit.
std::string service_in_name(std::string_view file) {
  for (std::size_t dash = file.find('-'); dash != std::string_view::npos; dash = file.find('-', dash + 1)) {
    if (dash + 1 < file.size() && std::isdigit(static_cast<unsigned char>(file[dash + 1])) != 0)
      return std::string(file.substr(0, dash));
  }
  return std::string(file.substr(0, file.find('.')));
}

std::string service_of(const Profile& profile) {
  for (StringIndex comment : profile.comments) {
    const std::string_view text = profile.text(comment);
    if (text.starts_with(kServiceNote)) return std::string(text.substr(kServiceNote.size()));
  }
  return profile.samples.empty() ? "" : label_text(profile, profile.samples.front(), kServiceLabel);
}

// A regular file, not a link to one: the folder may be another user's.
bool is_plain_file(const std::string& path, std::uint64_t& bytes) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  bytes = static_cast<std::uint64_t>(status.st_size);
  return true;
}

bool is_profile_name(const std::string& name) {
  const auto format = output_format(name);
  return format && is_readable(*format) && !name.starts_with('.');
}

// What a line of the index says; nothing when it lacks the times.
std::optional<StoredProfile> from_index(const std::string& folder, const IndexEntry& entry) {
  constexpr std::size_t kMostMemory = std::size_t{1} << 20U;
  const auto line = JsonDocument::parse(entry.line, kMostMemory);
  if (!line) return std::nullopt;
  const auto start = parse_rfc3339(json_text(line->root(), "start"));
  const auto end = parse_rfc3339(json_text(line->root(), "end"));
  if (!start || !end) return std::nullopt;
  StoredProfile stored{.path = folder + "/" + entry.file, .bytes = entry.bytes, .start = *start, .end = *end};
  stored.service = json_text(line->root(), "service");
  if (stored.service.empty()) stored.service = service_in_name(entry.file);
  if (const auto* sums = json_object(line->root(), "sums")) {
    if (const auto cpu = json_number(*sums, kCpuSum)) stored.cpu = rounded(*cpu);
  }
  return stored;
}

std::string types_of(const Profile& profile) {
  std::vector<std::string> types;
  for (const ValueType& type : profile.value_types)
    types.push_back(fmt::format("{}/{}", profile.text(type.type), profile.text(type.unit)));
  return fmt::format("{}", fmt::join(types, ", "));
}

}  // namespace

bool ProfileChoice::has(const StoredProfile& profile) const {
  if (since && profile.end < *since) return false;
  if (until && profile.start > *until) return false;
  return service.empty() || profile.service == service;
}

Result<StoredProfile> inspect_profile(const std::string& path) {
  const Profile profile = TRY(load_profile(path));
  StoredProfile stored{.path = path, .service = service_of(profile), .start = Nanoseconds(profile.time_ns)};
  stored.end = Nanoseconds(saturating_add(profile.time_ns, profile.duration_ns));
  is_plain_file(path, stored.bytes);
  if (stored.service.empty()) stored.service = service_in_name(base_name(path));
  if (const auto column = find_column(profile, "cpu")) {
    std::int64_t cpu = 0;
    for (const ProfileSample& sample : profile.samples) cpu = saturating_add(cpu, sample.values[*column]);
    stored.cpu = cpu;
  }
  return stored;
}

Result<std::vector<StoredProfile>> profiles_in(const std::string& folder) {
  std::vector<StoredProfile> stored;
  std::set<std::string> known;
  for (const IndexEntry& entry : read_index(read_index_file(folder))) {
    auto profile = from_index(folder, entry);
    if (!profile || !is_plain_file(profile->path, profile->bytes)) continue;
    if (known.insert(entry.file).second) stored.push_back(*std::move(profile));
  }
  std::error_code failed;
  std::filesystem::directory_iterator files(folder, failed);
  if (failed) return errno_error(failed.value(), "open " + folder);
  for (; files != std::filesystem::directory_iterator(); files.increment(failed)) {
    if (failed) return errno_error(failed.value(), "read " + folder);
    const std::string name = files->path().filename().string();
    std::uint64_t bytes = 0;
    if (known.contains(name) || !is_profile_name(name) || !is_plain_file(files->path().string(), bytes))
      continue;
    // A text that happens to end in .txt is no profile, and no reason to fail.
    if (auto profile = inspect_profile(files->path().string())) stored.push_back(std::move(profile).value());
  }
  std::stable_sort(stored.begin(), stored.end(), [](const StoredProfile& left, const StoredProfile& right) {
    return std::pair(left.end, std::string_view(left.path)) <
           std::pair(right.end, std::string_view(right.path));
  });
  return stored;
}

namespace {

constexpr std::string_view kLiveBytes = "inuse_space";

std::int64_t live_bytes(const Profile& profile) {
  const auto column = find_column(profile, kLiveBytes);
  std::int64_t sum = 0;
  for (const ProfileSample& sample : profile.samples)
    sum = saturating_add(sum, column ? sample.values[*column] : 0);
  return sum;
}

Nanoseconds end_of(const Profile& profile) {
  return Nanoseconds(saturating_add(profile.time_ns, profile.duration_ns));
}

// What profiles of one program have in common: "shop-12" of "shop-12-000003.pb.gz", else the service.
std::string program_of(const std::string& path, const Profile& profile) {
  constexpr std::size_t kDigits = 6;
  const std::string_view name = base_name(path).substr(0, base_name(path).find('.'));
  const std::size_t dash = name.rfind('-');
  const bool has_number = dash != std::string_view::npos && name.size() - dash - 1 >= kDigits &&
                          name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
  return has_number ? std::string(name.substr(0, dash)) : service_of(profile);
}

// The profiles of one program. Of its first and its last one the live bytes count.
struct OfProgram {
  Profile first;  // only for a view of growth
  Profile last;
  Nanoseconds first_end{};
  std::int64_t first_live = 0;

  void keep_first(const Profile& profile, MergeView view) {
    first_end = end_of(profile);
    first_live = live_bytes(profile);
    if (view == MergeView::growth) first = profile;
  }
};

class SeveralProfiles {
 public:
  SeveralProfiles(const Profile& shape, MergeView view) : merger_(shape), view_(view) {}

  void add(const std::string& path, Profile next) {
    auto [known, is_new] = programs_.try_emplace(program_of(path, next));
    OfProgram& program = known->second;
    if (is_new || end_of(next) < program.first_end) program.keep_first(next, view_);
    if (!is_new && end_of(next) < end_of(program.last)) return add_sums(next);
    if (!is_new) add_sums(program.last);
    program.last = std::move(next);
  }

  MergedProfile take() && {
    LiveGrowth growth{.is_view = view_ == MergeView::growth};
    bool is_known = false;
    for (auto& [name, program] : programs_) {
      if (view_ == MergeView::growth) {
        merger_.add(program.last, {.sums = 0, .without_label = kAgeLabel});
        merger_.add(program.first,
                    {.sums = 0, .snapshots = -1, .without_label = kAgeLabel, .by_address = true});
      } else {
        merger_.add(program.last);
      }
      const Nanoseconds over = end_of(program.last) - program.first_end;
      is_known = is_known || (over > Nanoseconds(0) && find_column(program.last, kLiveBytes));
      growth.before = saturating_add(growth.before, program.first_live);
      growth.after = saturating_add(growth.after, live_bytes(program.last));
      growth.over = std::max(growth.over, over);
    }
    MergedProfile merged{std::move(merger_).take(), std::nullopt};
    if (growth.is_view) growth.freed = keep_grown(merged.profile);
    if (is_known) merged.growth = growth;
    return merged;
  }

 private:
  void add_sums(const Profile& profile) {
    if (view_ == MergeView::sum) merger_.add(profile, {.snapshots = 0});
  }

  // Returns what has been freed of the others.
  static std::int64_t keep_grown(Profile& profile) {
    const auto column = find_column(profile, kLiveBytes);
    std::int64_t freed = 0;
    std::erase_if(profile.samples, [&](const ProfileSample& sample) {
      const std::int64_t value = column ? sample.values[*column] : 0;
      if (value < 0)
        freed = saturating_add(freed, -std::max(value, -std::numeric_limits<std::int64_t>::max()));
      return value <= 0;
    });
    return freed;
  }

  ProfileMerger merger_;
  MergeView view_;
  std::map<std::string, OfProgram> programs_;
};

}  // namespace

Result<MergedProfile> load_merged(const std::vector<std::string>& paths, MergeView view) {
  Profile first = TRY(load_profile(paths.front()));
  if (view == MergeView::growth && !find_column(first, kLiveBytes))
    return with_hint(
        make_error(ErrorCode::invalid_argument, "{}: has no live bytes that could grow", paths.front()),
        "profile with --preset cpu_live_heap");
  if (paths.size() == 1 && view == MergeView::sum) return MergedProfile{std::move(first), std::nullopt};
  const std::string types = types_of(first);
  SeveralProfiles several(first, view);
  several.add(paths.front(), std::move(first));
  for (std::size_t at = 1; at < paths.size(); ++at) {
    Profile next = TRY(load_profile(paths[at]));
    if (types_of(next) != types) {
      return make_error(ErrorCode::invalid_argument,
                        "{} has {}, and {} has {}: profiles of different values cannot be merged",
                        paths.front(), types, paths[at], types_of(next));
    }
    several.add(paths[at], std::move(next));
  }
  MergedProfile merged = std::move(several).take();
  if (view == MergeView::growth && !merged.growth)
    return with_hint(make_error(ErrorCode::invalid_argument, "--growth: all profiles are of the same moment"),
                     "name profiles of several periods, or a folder of them");
  return merged;
}

}  // namespace ddprof
