#include "symbol/jit_code_map.hpp"

#include <utility>

namespace ddprof {

std::size_t JitCode::memory_bytes() const {
  return sizeof *this + name.size() + files.size() + lines.size() * sizeof(Line) + unwinding.size();
}

bool JitCodeMap::load(JitCode code, std::size_t max_codes, std::size_t max_bytes) {
  if (code.size == 0 || code.size > ~code.start) return false;
  // First, so that a compiler that reuses its memory never reaches a limit.
  clear(code.start, code.start + code.size);
  if (size() >= max_codes || places_.size() >= kMaxPlaces) return false;
  if (memory_bytes() + kPlaceBytes + code.memory_bytes() > max_bytes) return false;
  memory_bytes_ += code.memory_bytes();
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(codes_.size()));
    codes_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  const std::uint64_t start = code.start;
  by_index_[code.index] = slot;
  codes_[slot] = Entry{.code = std::move(code), .last_start = start};
  put(start, slot, 0);
  return true;
}

bool JitCodeMap::move(std::uint64_t old_start, std::uint64_t new_start, std::uint64_t size,
                      std::uint64_t index) {
  const std::optional<std::uint32_t> slot = code_to_move(old_start, index);
  if (!slot || size == 0 || places_.size() >= kMaxPlaces || codes_[*slot].code.size > ~new_start)
    return false;
  Entry& entry = codes_[*slot];
  ++entry.uses;  // the new place may lie over all that is left of the old one
  clear(new_start, new_start + entry.code.size);
  put(new_start, *slot, new_start - entry.code.start);
  entry.last_start = new_start;
  release(*slot);
  return true;
}

std::optional<JitCodeMap::Found> JitCodeMap::find(std::uint64_t address) const {
  const auto after = places_.upper_bound(address);
  if (after == places_.begin()) return std::nullopt;
  const Place& place = std::prev(after)->second;
  if (address >= place.end) return std::nullopt;
  return Found{&code(place), place.moved_by};
}

void JitCodeMap::put(std::uint64_t start, std::uint32_t code, std::uint64_t moved_by) {
  places_[start] = {start + codes_[code].code.size, moved_by, code};
  ++codes_[code].uses;
}

// Makes [start, end) free: what reaches into it is cut, what lies inside goes.
void JitCodeMap::clear(std::uint64_t start, std::uint64_t end) {
  auto at = places_.lower_bound(start);
  if (at != places_.begin()) {
    Place& before = std::prev(at)->second;
    const Place whole = before;
    if (whole.end > start) before.end = start;
    if (whole.end > end) {
      places_.emplace_hint(at, end, whole);
      ++codes_[whole.code].uses;
      return;
    }
  }
  while (at != places_.end() && at->first < end) {
    const Place inside = at->second;
    at = places_.erase(at);
    if (inside.end > end) {
      places_.emplace_hint(at, end, inside);
      return;
    }
    release(inside.code);
  }
}

void JitCodeMap::release(std::uint32_t code) {
  Entry& entry = codes_[code];
  if (--entry.uses > 0) return;
  memory_bytes_ -= entry.code.memory_bytes();
  const auto known = by_index_.find(entry.code.index);
  if (known != by_index_.end() && known->second == code) by_index_.erase(known);
  entry = Entry{};
  free_.push_back(code);
}

// The compiler's number says which code is meant even where its old place has been overwritten meanwhile; but
// not every compiler gives numbers.
std::optional<std::uint32_t> JitCodeMap::code_to_move(std::uint64_t old_start, std::uint64_t index) const {
  const auto known = by_index_.find(index);
  if (known != by_index_.end() && codes_[known->second].last_start == old_start) return known->second;
  const auto place = places_.find(old_start);
  if (place == places_.end()) return std::nullopt;
  const bool is_start = codes_[place->second.code].code.start + place->second.moved_by == old_start;
  return is_start ? std::optional(place->second.code) : std::nullopt;
}

}  // namespace ddprof
