#include "export/profile_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <tuple>

#include "base/output_file.hpp"
#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "encode/escaped_text.hpp"
#include "encode/output_format.hpp"
#include "encode/pprof.hpp"
#include "export/datadog_body.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostIndexBytes = std::size_t{16} << 20U;
// Every line begins like this, and the name of the file, which has no quotes in it, follows.
constexpr std::string_view kFileField = R"({"file":")";
constexpr std::string_view kBytesField = R"(","bytes":)";
constexpr std::string_view kExtension = ".pb.gz";

std::int64_t sum_of_column(const Profile& profile, std::size_t column) {
  return std::accumulate(
      profile.samples.begin(), profile.samples.end(), std::int64_t{0},
      [column](std::int64_t sum, const ProfileSample& sample) { return sum + sample.values[column]; });
}

// Such as "cpu/nanoseconds": what all samples of a profile add up to.
std::string sums_of(const Profile& profile) {
  std::string json = "{";
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    const auto& type = profile.value_types[column];
    if (column > 0) json += ',';
    append_json_string(json, fmt::format("{}/{}", profile.text(type.type), profile.text(type.unit)));
    json += fmt::format(":{}", sum_of_column(profile, column));
  }
  return json + "}";
}

std::optional<IndexEntry> parse_entry(std::string_view line) {
  if (!line.starts_with(kFileField) || !line.ends_with('}')) return std::nullopt;
  const std::string_view rest = line.substr(kFileField.size());
  const std::size_t end = rest.find('"');
  if (end == std::string_view::npos || end == 0 || !rest.substr(end).starts_with(kBytesField))
    return std::nullopt;
  const std::string_view file = rest.substr(0, end);
  if (file.find('/') != std::string_view::npos || file.starts_with('.') || !file.ends_with(kExtension))
    return std::nullopt;
  const std::string_view number = rest.substr(end + kBytesField.size());
  IndexEntry entry{.file = std::string(file), .bytes = 0, .line = std::string(line)};
  if (std::from_chars(number.data(), number.data() + number.size(), entry.bytes).ec != std::errc{})
    return std::nullopt;
  return entry;
}

// A file that is ours by name, "shop-20261116T065102Z-4711-9f3c21-000003.pb.gz" or, of earlier versions,
// "shop-4711-000003.pb.gz", and by its owner. Nothing else is ever removed, whatever an index says.
bool is_own_profile(const OutputFolder& folder, const std::string& name) {
  constexpr std::size_t kDigits = 6;
  const std::string_view stem = std::string_view(name).substr(0, name.size() - kExtension.size());
  const auto is_number = [](std::string_view text, std::size_t least) {
    return text.size() >= least && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  // Behind the sequence may be the number of a name that was taken.
  const std::size_t last = stem.rfind('-');
  if (last == std::string_view::npos || last == 0 || !is_number(stem.substr(last + 1), 1)) return false;
  const std::size_t before = stem.rfind('-', last - 1);
  const std::string_view previous =
      before == std::string_view::npos ? "" : stem.substr(before + 1, last - before - 1);
  if (!is_number(stem.substr(last + 1), kDigits) && !is_number(previous, kDigits)) return false;
  struct stat status {};
  return folder.has(name, status) && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

// The index, locked, for as long as it is open: one process after the other. It is a file that only this user
// can open, so that no other user can lock it. Where locks are not known, or when another process never gives
// its lock back, at their own risk. An index of another user is replaced.
class LockedIndex {
 public:
  static LockedIndex open(const OutputFolder& folder) {
    constexpr auto kPatience = std::chrono::seconds(2);
    LockedIndex index;
    for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
      index.file_ = folder.open_own(std::string(kIndexName)).value_or({});
      if (index.file_.is_open() && (!index.wait(end) || index.is_current(folder))) break;
      if (!index.file_.is_open() && !make(folder)) break;
    }
    return index;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static bool make(const OutputFolder& folder) {
    const std::string name(kIndexName);
    struct stat status {};
    const bool is_foreign =
        folder.has(name, status) && (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid());
    return is_foreign ? folder.replace(name, "").ok() : folder.create(name, "").ok();
  }
  // False: its time is over.
  [[nodiscard]] bool wait(Clock::time_point end) const {
    constexpr auto kPause = std::chrono::milliseconds(5);
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || Clock::now() >= end) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }
  // Not if who had the lock before has put another in its place.
  [[nodiscard]] bool is_current(const OutputFolder& folder) const {
    struct stat ours {
    }, current{};
    return ::fstat(file_.get(), &ours) == 0 && folder.has(std::string(kIndexName), current) &&
           ours.st_ino == current.st_ino && ours.st_dev == current.st_dev;
  }

  UniqueFd file_;
};

// Whether a file holds the profile of this time already: a worker that ended between writing and saying so
// has left it, and its successor sends the batch again.
bool holds_profile(const OutputFolder& folder, const std::string& name, std::int64_t time_ns) {
  constexpr std::size_t kMostProfileBytes = std::size_t{64} << 20U;
  const auto bytes = folder.read_own(name, kMostProfileBytes);
  if (!bytes) return false;
  const auto there = decode_pprof(std::as_bytes(std::span(*bytes)));
  return there && time_ns != 0 && there->time_ns == time_ns;
}

// Removes what is beyond the limits from the folder and from the list, oldest first.
void keep_newest(const OutputFolder& folder, const FolderLimits& limits, std::vector<IndexEntry>& entries) {
  std::uint64_t bytes = 0;
  std::size_t kept = 0;
  while (kept < entries.size() && kept < limits.files) {
    bytes += entries[entries.size() - 1 - kept].bytes;
    if (bytes > limits.bytes && kept > 0) break;
    ++kept;
  }
  const auto first_kept = entries.end() - static_cast<std::ptrdiff_t>(kept);
  for (auto entry = entries.begin(); entry != first_kept; ++entry) {
    if (is_own_profile(folder, entry->file)) std::ignore = folder.remove(entry->file);
  }
  entries.erase(entries.begin(), first_kept);
}

Result<void> add_to_index(const OutputFolder& folder, const FolderLimits& limits, IndexEntry added) {
  const LockedIndex lock = LockedIndex::open(folder);
  const std::string name(kIndexName);
  std::vector<IndexEntry> entries = read_index(folder.read_own(name, kMostIndexBytes).value_or(""));
  std::erase_if(entries, [&](const IndexEntry& known) {
    struct stat status {};
    return known.file == added.file || !folder.has(known.file, status);
  });
  entries.push_back(std::move(added));
  keep_newest(folder, limits, entries);
  std::string text;
  for (const IndexEntry& known : entries) text += known.line + "\n";
  return folder.replace(name, text);
}

// The name that it has got.
Result<std::string> write_profile(const OutputFolder& folder, const std::string& prefix,
                                  const FolderProfile& profile) {
  constexpr int kMostTries = 100;
  std::string name = fmt::format("{}-{:06}{}", prefix, profile.sequence, kExtension);
  for (int number = 2; number < kMostTries; ++number) {
    if (TRY(folder.create(name, profile.content))) return name;
    if (holds_profile(folder, name, profile.time_ns)) {
      TRY(folder.replace(name, profile.content));
      return name;
    }
    name = fmt::format("{}-{:06}-{}{}", prefix, profile.sequence, number, kExtension);
  }
  return make_error(ErrorCode::failed, "write {}: this name and others like it are taken",
                    folder.path_of(name));
}

}  // namespace

std::vector<IndexEntry> read_index(std::string_view text) {
  std::vector<IndexEntry> entries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto entry = parse_entry(text.substr(0, end))) entries.push_back(*std::move(entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

RunStamp RunStamp::at(Nanoseconds unix_time) {
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(unix_time).count();
  std::tm moment{};
  ::gmtime_r(&seconds, &moment);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &moment);
  std::random_device random;
  return {text.data(), fmt::format("{:06x}", random() & 0xffffffU)};
}

Result<ProfileFolder> ProfileFolder::create(FolderRun run, FolderLimits limits, Voice voice) {
  if (auto writable = check_writable(run.prefix + "-000000.pb.gz"); !writable)
    return std::move(writable).error();
  return ProfileFolder(std::move(run), limits, std::move(voice));
}

Result<Delivery> ProfileFolder::send(const Batch& batch) {
  auto kept = keep(batch);
  const bool was_broken = std::exchange(is_broken_, !kept);
  if (!kept) {
    Error error = std::move(kept).error();
    if (!was_broken && voice_.say)
      voice_.say(with_hint(
          make_error(error.code, "{}; profiles are lost until it can be written again", error.message),
          error.hint));
    return error;
  }
  if (was_broken && voice_.say_notice)
    voice_.say_notice(fmt::format("profiles are written to {} again", describe()));
  return Delivery::arrived;
}

// Everything that needs the disk, and nothing of ours: it may be left behind.
Result<FolderProfile::Written> FolderProfile::write(const FolderRun& run, const FolderLimits& limits) const {
  const auto [folder_path, prefix] = split_path(run.prefix);
  const OutputFolder folder = TRY(OutputFolder::open(folder_path));
  const std::string name = TRY(write_profile(folder, prefix, *this));
  IndexEntry entry{.file = name, .bytes = content.size(), .line = {}};
  entry.line = fmt::format("{}{}{}{}{}", kFileField, name, kBytesField, content.size(), rest_of_line);
  Written written{.path = folder.path_of(name), .index = std::nullopt};
  if (auto indexed = add_to_index(folder, limits, std::move(entry)); !indexed)
    written.index = std::move(indexed).error();
  return written;
}

Result<void> ProfileFolder::keep(const Batch& batch) {
  Profile joined;
  const Profile& profile = batch.whole(joined);
  auto content = std::make_shared<const FolderProfile>(
      FolderProfile{.content = TRY(encode(profile, OutputFormat::pprof_gzip)),
                    .sequence = batch.sequence,
                    .time_ns = profile.time_ns,
                    .rest_of_line = rest_of_line(batch, profile)});
  auto called = calls_.call([content, run = run_, limits = limits_] { return content->write(run, limits); });
  if (!called) return does_not_answer("write to " + describe());
  const FolderProfile::Written written = TRY(std::move(*called));
  if (voice_.say_debug)
    voice_.say_debug(fmt::format("wrote {}: {} bytes", written.path, content->content.size()));
  const bool was_indexed = std::exchange(is_indexed_, !written.index);
  if (written.index && was_indexed && voice_.say)
    voice_.say(make_error(written.index->code, "{}; profiles are written, but old ones are not removed",
                          written.index->message));
  return {};
}

std::string ProfileFolder::rest_of_line(const Batch& batch, const Profile& profile) const {
  std::string service;
  append_json_string(service, run_.service);
  return fmt::format(R"(,"sequence":{},"service":{},"pid":{},"start":"{}","end":"{}","sums":{}}})",
                     batch.sequence, service, run_.pid, rfc3339(batch.start), rfc3339(batch.end),
                     sums_of(profile));
}

std::string read_index_file(const std::string& path) {
  const auto folder = OutputFolder::open(path);
  if (!folder) return {};
  const UniqueFd file(::openat(folder->fd(), std::string(kIndexName).c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {
  }, place{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || ::fstat(folder->fd(), &place) != 0) return {};
  const bool is_shared = (place.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_owners = status.st_uid == place.st_uid && !is_shared;
  if (!S_ISREG(status.st_mode) || !(is_trusted_owner(status.st_uid) || is_owners)) return {};
  return read_file(fmt::format("/proc/self/fd/{}", file.get()), kMostIndexBytes).value_or("");
}

}  // namespace ddprof
