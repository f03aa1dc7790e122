#include "collect/heap/stack_log.hpp"

#include <algorithm>

namespace ddprof {

namespace {

constexpr std::size_t kHeader = 3;  // words before the addresses
constexpr std::size_t kMostFrames = 4096;

}  // namespace

StackLog::StackLog(const MappedRegion& memory) : memory_(memory) {
  const auto all = words();
  const std::size_t used = std::clamp<std::size_t>(all[0], 1, all.size());
  std::size_t at = 1;
  while (at + kHeader <= used) {
    const std::uint64_t count = all[at + 2];
    if (count > kMostFrames || at + kHeader + count > used) break;
    places_[{static_cast<std::int32_t>(all[at]), all[at + 1]}] = at;
    at += kHeader + count;
  }
  all[0] = at;
}

bool StackLog::add(Pid pid, std::uint64_t stack_id, std::span<const std::uint64_t> addresses) {
  const std::size_t count = std::min(addresses.size(), kMostFrames);
  const auto all = words();
  if (all[0] + kHeader + count > all.size()) move_together();
  const std::size_t at = all[0];
  if (at + kHeader + count > all.size()) return false;
  all[at] = static_cast<std::uint32_t>(to_int(pid));
  all[at + 1] = stack_id;
  all[at + 2] = count;
  std::copy_n(addresses.begin(), count, all.begin() + static_cast<std::ptrdiff_t>(at + kHeader));
  all[0] = at + kHeader + count;
  places_[{to_int(pid), stack_id}] = at;
  return true;
}

std::span<const std::uint64_t> StackLog::find(Pid pid, std::uint64_t stack_id) const {
  const auto place = places_.find({to_int(pid), stack_id});
  if (place == places_.end()) return {};
  return words().subspan(place->second + kHeader, words()[place->second + 2]);
}

void StackLog::move_together() {
  std::vector<std::pair<std::size_t, Key>> needed;
  for (const auto& [key, place] : places_) needed.emplace_back(place, key);
  std::sort(needed.begin(), needed.end());
  const auto all = words();
  std::size_t at = 1;
  all[0] = at;  // a worker that dies in between leaves what has been moved
  for (const auto& [place, key] : needed) {
    const std::size_t length = kHeader + all[place + 2];
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(place), length,
                all.begin() + static_cast<std::ptrdiff_t>(at));
    places_[key] = at;
    at += length;
    all[0] = at;
  }
}

}  // namespace ddprof
