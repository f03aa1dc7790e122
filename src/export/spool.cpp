#include "export/spool.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/clock.hpp"
#include "export/parcel_file.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kParcelSuffix = ".parcel";
constexpr std::string_view kAddingLock = "adding.lock";
constexpr std::size_t kStampDigits = 20;

bool is_unfinished(const PrivateFile& file) { return file.name.starts_with('.'); }

bool is_parcel(const PrivateFile& file) { return file.name.ends_with(kParcelSuffix) && !is_unfinished(file); }

std::uint64_t stamp_of(std::string_view name) {
  std::uint64_t stamp = 0;
  const std::string_view digits = name.substr(0, kStampDigits);
  std::from_chars(digits.data(), digits.data() + digits.size(), stamp);
  return stamp;
}

// Names sort in the order of adding: by the time of it, but never before what is there, so that a clock that
// is set back changes nothing. The number at the end tells those of several processes apart, whose PIDs may
// be the same in two containers.
std::string name_behind(const std::vector<PrivateFile>& parcels) {
  auto stamp = static_cast<std::uint64_t>(std::max<std::int64_t>(unix_now().count(), 1));
  if (!parcels.empty()) stamp = std::max(stamp, stamp_of(parcels.back().name) + 1);
  return fmt::format("{:0{}}-{:08x}{}", stamp, kStampDigits, std::random_device{}(), kParcelSuffix);
}

}  // namespace

Spool::Spool(std::string path, PrivateFolder folder, SpoolLimits limits)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      limits_(limits),
      unix_at_boot_(unix_now() - read_clock(CLOCK_BOOTTIME)) {}

Result<Spool> Spool::open(const std::string& folder, SpoolLimits limits) {
  Spool spool(folder, TRY(PrivateFolder::open(folder)), limits);
  std::ignore = spool.turn_to_add();  // there before the disk is full
  return spool;
}

void Spool::drop_outdated_beside() {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (fs::directory_iterator at(fs::path(path_).parent_path(), failed), end; !failed && at != end;
       at.increment(failed)) {
    if (!fs::exists(at->path() / kAddingLock, failed)) continue;  // not a spool
    const auto neighbour = PrivateFolder::open(at->path().string());
    if (!neighbour) continue;
    for (const PrivateFile& file : neighbour->files())
      if (is_parcel(file) && is_too_old(file) && neighbour->remove(file.name)) dropped_++;
  }
}

std::vector<PrivateFile> Spool::files() const {
  std::vector<PrivateFile> files = folder_.files();
  std::sort(files.begin(), files.end(),
            [](const PrivateFile& left, const PrivateFile& right) { return left.name < right.name; });
  return files;
}

std::vector<PrivateFile> Spool::parcels() const {
  std::vector<PrivateFile> parcels = files();
  std::erase_if(parcels, [](const PrivateFile& file) { return !is_parcel(file); });
  return parcels;
}

void Spool::drop(const std::string& name) {
  if (folder_.remove(name)) dropped_++;
}

// By the clock as it is and as it would be had nobody set it since the spool was opened: a machine that
// learns the time late, or wakes up, does not lose what it has just kept.
bool Spool::is_older(const PrivateFile& file, Nanoseconds age) const {
  const Nanoseconds now = std::min(unix_now(), unix_at_boot_ + read_clock(CLOCK_BOOTTIME));
  return file.written < now - age;
}

// Files that nobody finished were begun by processes that crashed.
bool Spool::is_too_old(const PrivateFile& file) const {
  constexpr Nanoseconds kLongestWrite = std::chrono::minutes(10);
  return is_older(file, is_parcel(file) ? limits_.age : kLongestWrite);
}

std::vector<PrivateFile> Spool::make_room(const std::vector<PrivateFile>& files, std::uint64_t wanted) {
  std::vector<PrivateFile> left;
  std::uint64_t bytes = wanted;
  for (const PrivateFile& file : files) bytes += file.bytes;
  for (const PrivateFile& file : files) {
    if (!is_parcel(file) && !is_unfinished(file)) continue;
    const bool is_in_the_way = is_parcel(file) && bytes > limits_.bytes;
    if (is_in_the_way || is_too_old(file)) {
      if (folder_.remove(file.name) && is_parcel(file)) dropped_++;
      bytes -= file.bytes;
    } else if (is_parcel(file)) {
      left.push_back(file);
    }
  }
  return left;
}

// Without a turn, two who add at once could together take more than there is.
UniqueFd Spool::turn_to_add() const {
  constexpr std::chrono::milliseconds kPatience(500);  // a process that was stopped stops nobody else
  return folder_.lock(std::string(kAddingLock), kPatience);
}

Result<std::string> Spool::add(const Parcel& parcel) {
  const std::string content = write_parcel(parcel);
  if (content.size() > limits_.bytes)
    return make_error(ErrorCode::exhausted, "a profile of {} KiB is more than {} may hold",
                      content.size() >> 10U, path_);
  if (!folder_.is_linked()) folder_ = TRY(PrivateFolder::open(path_));  // somebody has tidied up
  const UniqueFd turn = turn_to_add();
  std::string name = name_behind(make_room(files(), content.size()));
  const auto written = folder_.write_durably(name, std::as_bytes(std::span(content)));
  if (written) return name;
  // The same trouble has the same words.
  const std::string& why = written.error().message;
  return make_error(written.error().code, "write to {}{}", path_,
                    why.substr(std::min(why.find(": "), why.size())));
}

Result<void> Spool::deliver(const Attempt& attempt) {
  // What was delivered and cannot be removed would be delivered again and again.
  if (!folder_.is_writable()) return {};
  const UniqueFd lock = folder_.try_lock();
  if (!lock.is_open()) return {};
  std::optional<Error> unreadable;
  for (const PrivateFile& file : make_room(files(), 0)) {
    const auto content = folder_.read_copy(file.name, limits_.bytes);
    if (!content && content.error().code == ErrorCode::not_found) continue;   // somebody made room
    if (!content && content.error().code == ErrorCode::exhausted) return {};  // no descriptors, no memory
    if (!content && content.error().code != ErrorCode::corrupt) {
      // A disk that fails now may be read again later.
      if (!unreadable) unreadable = content.error();
      continue;
    }
    const auto parcel =
        content ? read_parcel(std::as_bytes(std::span(*content))) : Result<Parcel>(content.error());
    const Fate fate = parcel ? attempt(file.name, *parcel) : Fate::refused;
    if (fate == Fate::kept) break;
    if (fate == Fate::refused) drop(file.name);
    if (fate == Fate::delivered) std::ignore = folder_.remove(file.name);
  }
  return unreadable ? Result<void>(*std::move(unreadable)) : Result<void>();
}

bool Spool::is_empty() const { return !folder_.has_file(kParcelSuffix); }

Spool::State Spool::state() const {
  State state{.parcels = 0, .bytes = 0, .dropped = dropped_};
  for (const PrivateFile& file : parcels()) {
    state.parcels++;
    state.bytes += file.bytes;
  }
  return state;
}

}  // namespace ddprof
