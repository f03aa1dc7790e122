#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/read_limits.hpp"

namespace ddprof {

struct JitSymbol {
  std::string_view name;
  std::uint64_t start = 0;  // run-time address
  std::uint64_t size = 0;
};

// Code that a JIT compiler described in /tmp/perf-PID.map: lines of "START SIZE name", appended while it
// runs. Where lines overlap, the later one holds, because code memory is reused.
class JitNames {
 public:
  static constexpr std::size_t kMaxNameBytes = 300;
  static constexpr std::uint64_t kMaxLines = 4'000'000;  // some of them say again what others said

  class Builder;

  JitNames() = default;

  // Takes what can be read: malformed lines are counted, a last line without its newline is ignored.
  static JitNames parse(std::string_view text, const ReadLimits& limits = {});

  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::uint64_t skipped_lines() const { return skipped_lines_; }
  // Of them, those that would have been too much to hold or to read.
  [[nodiscard]] std::uint64_t unread_lines() const { return unread_lines_; }

 private:
  struct Entry {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t name = 0;  // offset into names_, zero-terminated
  };

  std::vector<Entry> entries_;  // sorted, disjoint
  std::string names_;
  std::uint64_t skipped_lines_ = 0;
  std::uint64_t unread_lines_ = 0;
};

// Makes one from a file that is read piece by piece: the text takes several times the memory of the map.
class JitNames::Builder {
 public:
  explicit Builder(const ReadLimits& limits)
      : max_entries_(limits.count(kEntryBytes, 2)), max_name_bytes_(limits.bytes() / 8) {}

  // Takes the whole lines at the front of `text`. Returns how many bytes they are.
  std::size_t add(std::string_view text);
  [[nodiscard]] JitNames build() &&;

 private:
  static constexpr std::size_t kEntryBytes = 64;  // of a node of `ranges_`
  struct Range {
    std::uint64_t end = 0;
    std::uint32_t name = 0;
  };

  void add_line(std::string_view line);
  void clear_range(std::uint64_t start, std::uint64_t end);
  [[nodiscard]] bool has_room_for(std::string_view name);

  std::size_t max_entries_;
  std::size_t max_name_bytes_;
  std::uint64_t lines_ = 0;
  std::map<std::uint64_t, Range> ranges_;  // disjoint
  JitNames map_;
};

}  // namespace ddprof
