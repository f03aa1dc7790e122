#include "export/profile_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <thread>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "encode/decode.hpp"
#include "encode/json_text.hpp"
#include "encode/output_format.hpp"
#include "export/datadog_body.hpp"
#include "export/file_destination.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostIndexBytes = std::size_t{16} << 20U;
// Every line begins like this, and the name of the file, which has no quotes in it, follows.
constexpr std::string_view kFileField = R"({"file":")";
constexpr std::string_view kBytesField = R"(","bytes":)";
constexpr std::string_view kExtension = ".pb.gz";

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"./", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

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

// One process after the other, for as long as it is open. Where locks are not known, or when another process
// never gives its lock back, at their own risk.
void wait_for_lock(int folder) {
  constexpr auto kPatience = std::chrono::seconds(2);
  constexpr auto kPause = std::chrono::milliseconds(5);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (::flock(folder, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPause);
}

// In a folder like /tmp an index may be a stranger's: only files of this user are removed there.
bool may_remove(int folder, const std::string& name) {
  struct stat place {
  }, file{};
  return ::fstat(folder, &place) == 0 && ::fstatat(folder, name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(file.st_mode) && ((place.st_mode & S_ISVTX) == 0 || file.st_uid == ::geteuid());
}

// Whether a file holds this batch already: a worker that ended between writing and saying so has left it, and
// its successor sends the batch again.
bool holds_batch(const std::string& path, const Batch& batch) {
  constexpr std::size_t kMostProfileBytes = std::size_t{64} << 20U;
  const auto bytes = read_file(path, kMostProfileBytes);
  if (!bytes) return false;
  const auto there = decode(std::as_bytes(std::span(*bytes)));
  const Profile& ours = batch.parts.front().profile;
  return there && ours.time_ns != 0 && there->time_ns == ours.time_ns;
}

// Removes what is beyond the limits from the folder and from the list, oldest first.
void keep_newest(int folder, const FolderLimits& limits, std::vector<IndexEntry>& entries) {
  std::uint64_t bytes = 0;
  std::size_t kept = 0;
  while (kept < entries.size() && kept < limits.files) {
    bytes += entries[entries.size() - 1 - kept].bytes;
    if (bytes > limits.bytes && kept > 0) break;
    ++kept;
  }
  const auto first_kept = entries.end() - static_cast<std::ptrdiff_t>(kept);
  for (auto entry = entries.begin(); entry != first_kept; ++entry) {
    if (may_remove(folder, entry->file)) ::unlinkat(folder, entry->file.c_str(), 0);
  }
  entries.erase(entries.begin(), first_kept);
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

Result<void> ProfileFolder::keep(const Batch& batch) {
  const std::string content = TRY(encode(batch.parts.front().profile, OutputFormat::pprof_gzip));
  const std::string path = TRY(write_profile(batch, content));
  if (voice_.say_debug) voice_.say_debug(fmt::format("wrote {}: {} bytes", path, content.size()));
  return note(entry_of(split_path(path).second, content.size(), batch));
}

// The path that it has got.
Result<std::string> ProfileFolder::write_profile(const Batch& batch, const std::string& content) const {
  constexpr int kMostTries = 100;
  const std::uint64_t sequence = batch.sequence;
  std::string path = fmt::format("{}-{:06}{}", run_.prefix, sequence, kExtension);
  for (int number = 2; number < kMostTries; ++number) {
    if (TRY(write_new_file(path, content))) return path;
    if (holds_batch(path, batch)) {
      TRY(write_file_atomically(path, content));
      return path;
    }
    path = fmt::format("{}-{:06}-{}{}", run_.prefix, sequence, number, kExtension);
  }
  return make_error(ErrorCode::failed, "write {}: this name and others like it are taken", path);
}

IndexEntry ProfileFolder::entry_of(std::string file, std::size_t bytes, const Batch& batch) const {
  IndexEntry entry{.file = std::move(file), .bytes = bytes, .line = {}};
  std::string service;
  append_json_string(service, run_.service);
  entry.line =
      fmt::format(R"({}{}{}{},"sequence":{},"service":{},"pid":{},"start":"{}","end":"{}","sums":{}}})",
                  kFileField, entry.file, kBytesField, bytes, batch.sequence, service, run_.pid,
                  rfc3339(batch.start), rfc3339(batch.end), sums_of(batch.parts.front().profile));
  return entry;
}

Result<void> ProfileFolder::note(IndexEntry entry) const {
  const std::string folder = split_path(run_.prefix).first;
  const UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.is_open()) return errno_error(errno, "open " + folder);
  wait_for_lock(lock.get());
  const std::string path = folder + std::string(kIndexName);
  std::vector<IndexEntry> entries = read_index(read_file(path, kMostIndexBytes).value_or(""));
  std::erase_if(entries, [&](const IndexEntry& known) {
    return known.file == entry.file || ::access((folder + known.file).c_str(), F_OK) != 0;
  });
  entries.push_back(std::move(entry));
  keep_newest(lock.get(), limits_, entries);
  std::string text;
  for (const IndexEntry& known : entries) text += known.line + "\n";
  return replace_file(path, text);
}

}  // namespace ddprof
