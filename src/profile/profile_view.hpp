#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// How profiles are read by whatever shows them.

// The column that people look at first: the profile's default_value_type, else the last one. None without
// columns.
std::optional<std::size_t> default_column(const Profile& profile);

// The column whose type has this name.
std::optional<std::size_t> find_column(const Profile& profile, std::string_view type);

// The column that counts samples, if there is one.
std::optional<std::size_t> samples_column(const Profile& profile);

// The text of a label, numbers written out; empty when the sample has no such label.
std::string label_text(const Profile& profile, const ProfileSample& sample, std::string_view key);

// Sums of values that a foreign file may have chosen: they stop at the limits instead of wrapping around.
[[nodiscard]] inline std::int64_t saturating_add(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return right > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

// "/usr/lib/libfoo.so.1" -> "libfoo.so.1".
std::string_view base_name(std::string_view path);

// Each location as a list of ids, innermost first: its functions, its source lines, its module.
class LocationIds {
 public:
  void add(std::uint32_t id) { ids_.push_back(id); }
  void end_location() { ends_.push_back(ids_.size()); }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t location) const {
    return std::span(ids_).subspan(ends_[location], ends_[location + 1] - ends_[location]);
  }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<std::size_t> ends_{0};
};

// One function of one module, as people see it.
struct NamedFrame {
  std::string name;        // readable; "libfoo.so+0x1234" or "0x1234" when no name is known
  std::string module;      // base name of the file; empty when unknown
  bool is_marker = false;  // "[lost: ring buffer full]": not code
  bool is_unnamed = false;
};

// Every location as its functions: inlined calls become frames of their own, equal functions the same frame.
// The ids of a location are those of its lines, one each and in their order; one when it has none.
class FrameTable {
 public:
  explicit FrameTable(const Profile& profile);

  // Innermost first. Never empty.
  [[nodiscard]] std::span<const std::uint32_t> frames(std::uint32_t location) const {
    return ids_.of(location);
  }
  [[nodiscard]] const NamedFrame& operator[](std::uint32_t frame) const { return frames_[frame]; }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  [[nodiscard]] const LocationIds& ids() const { return ids_; }

 private:
  std::vector<NamedFrame> frames_;
  LocationIds ids_;
};

}  // namespace ddprof
