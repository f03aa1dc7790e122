#include "export/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

#include "base/clock.hpp"
#include "export/parcel_file.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kParcelSuffix = ".parcel";
constexpr std::string_view kDeliveryLock = "delivery.lock";

// Names sort by time: by that of the parcel, not by that of its writing.
std::string name_of(const Parcel& parcel) {
  return fmt::format("{:020}-{:010}-{}{}", parcel.start.count(), parcel.sequence, ::getpid(), kParcelSuffix);
}

}  // namespace

Result<Spool> Spool::open(const std::string& folder, SpoolLimits limits) {
  return Spool(TRY(PrivateFolder::open(folder)), limits);
}

std::vector<PrivateFile> Spool::parcels() const {
  std::vector<PrivateFile> files = folder_.files();
  std::erase_if(files, [](const PrivateFile& file) { return !file.name.ends_with(kParcelSuffix); });
  std::sort(files.begin(), files.end(),
            [](const PrivateFile& left, const PrivateFile& right) { return left.name < right.name; });
  return files;
}

void Spool::drop(const std::string& name) {
  if (folder_.remove(name)) dropped_++;
}

void Spool::remove_half_written(Nanoseconds now) {
  constexpr Nanoseconds kLongestWrite = std::chrono::hours(1);
  for (const PrivateFile& file : folder_.files())
    if (file.name.starts_with('.') && file.written < now - kLongestWrite)
      std::ignore = folder_.remove(file.name);
}

void Spool::make_room(std::uint64_t wanted) {
  const std::vector<PrivateFile> files = parcels();
  std::uint64_t bytes = wanted;
  for (const PrivateFile& file : files) bytes += file.bytes;
  const Nanoseconds now = unix_now();
  const Nanoseconds oldest = now - limits_.age;
  for (const PrivateFile& file : files) {
    if (bytes <= limits_.bytes && file.written >= oldest) break;
    drop(file.name);
    bytes -= file.bytes;
  }
  remove_half_written(now);
}

Result<void> Spool::add(const Parcel& parcel) {
  const std::string file = write_parcel(parcel);
  if (file.size() > limits_.bytes) {
    dropped_++;
    return make_error(ErrorCode::exhausted, "spool: a profile of {} KiB is more than it may hold",
                      file.size() >> 10U);
  }
  make_room(file.size());
  return folder_.write_durably(name_of(parcel), std::as_bytes(std::span(file)));
}

void Spool::deliver(const std::function<Fate(const Parcel&)>& attempt) {
  const UniqueFd lock = folder_.try_lock(std::string(kDeliveryLock));
  if (!lock.is_open()) return;
  make_room(0);
  for (const PrivateFile& file : parcels()) {
    const auto content = folder_.read(file.name);
    if (!content) continue;  // somebody made room
    const auto parcel = read_parcel(content->bytes());
    if (!parcel) {
      drop(file.name);
      continue;
    }
    const Fate fate = attempt(*parcel);
    if (fate == Fate::kept) return;
    if (fate == Fate::refused) drop(file.name);
    if (fate == Fate::delivered) std::ignore = folder_.remove(file.name);
  }
}

Spool::State Spool::state() const {
  State state{.parcels = 0, .bytes = 0, .dropped = dropped_};
  for (const PrivateFile& file : parcels()) {
    state.parcels++;
    state.bytes += file.bytes;
  }
  return state;
}

}  // namespace ddprof
