#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprof {

struct JitSymbol {
  std::string_view name;
  std::uint64_t start = 0;  // run-time address
  std::uint64_t size = 0;
};

// Code that a JIT compiler described in /tmp/perf-PID.map: lines of "START SIZE name", appended while it
// runs. Where lines overlap, the later one holds, because code memory is reused.
class PerfMap {
 public:
  static constexpr std::size_t kMaxNameBytes = 300;
  static constexpr std::size_t kMaxEntries = 2'000'000;

  PerfMap() = default;

  // Takes what can be read: malformed lines are counted, a last line without its newline is ignored.
  static PerfMap parse(std::string_view text);

  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::uint64_t skipped_lines() const { return skipped_lines_; }

 private:
  struct Entry {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t name = 0;  // offset into names_, zero-terminated
  };

  std::vector<Entry> entries_;  // sorted, disjoint
  std::string names_;
  std::uint64_t skipped_lines_ = 0;
};

}  // namespace ddprof
