#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "wire/unwind_table.h"

namespace ddprof {

// Index into the RuleDictionary. The first two are the same in every dictionary.
enum class RuleIndex : std::uint16_t { gap = 0, unsupported = 1 };
constexpr std::size_t to_int(RuleIndex index) { return static_cast<std::size_t>(index); }

// The distinct unwind rules of all tables of this process: a whole Debian system needs about 4,400, so that
// 16 bits name any of them. Rules are never removed and never move: a reference or span stays valid.
class RuleDictionary {
 public:
  RuleDictionary();
  RuleDictionary(const RuleDictionary&) = delete;
  RuleDictionary& operator=(const RuleDictionary&) = delete;

  // What follows is of another file. No file may take more than a quarter of the room that is left, so that
  // none of them can fill it; what processes write while they run gets nothing of the second half.
  void start_file() { limit_ = rules_.size() + (DDPROF_MAX_UNWIND_RULES - rules_.size() + 3) / 4; }
  void start_generated_code() { limit_ = DDPROF_MAX_UNWIND_RULES / 2; }

  // The index of this rule; RuleIndex::unsupported (and one more refusal) when the dictionary is full, for
  // this file.
  RuleIndex intern(const ddprof_unwind_rule& rule) {
    const std::uint64_t key = key_of(rule);
    const Recent& recent = recent_[recent_slot(key)];
    return recent.key == key ? recent.index : intern_slowly(rule, key);
  }

  [[nodiscard]] const ddprof_unwind_rule& operator[](RuleIndex index) const { return rules_[to_int(index)]; }
  [[nodiscard]] std::span<const ddprof_unwind_rule> rules() const { return rules_; }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

 private:
  // Compilers emit a few dozen rules over and over: a direct-mapped cache answers before the hash table is
  // asked.
  struct Recent {
    std::uint64_t key = 0;  // 0 is the gap rule, whose index the zeroed slot also holds
    RuleIndex index = RuleIndex::gap;
  };
  static constexpr unsigned kRecentBits = 9;

  static std::uint64_t key_of(const ddprof_unwind_rule& rule) {
    std::uint64_t key = 0;
    std::memcpy(&key, &rule, sizeof key);
    return key;
  }
  static std::size_t recent_slot(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15U) >> (64 - kRecentBits);
  }
  RuleIndex intern_slowly(const ddprof_unwind_rule& rule, std::uint64_t key);

  std::vector<ddprof_unwind_rule> rules_;
  absl::flat_hash_map<std::uint64_t, RuleIndex> indices_;
  std::array<Recent, std::size_t{1} << kRecentBits> recent_{};
  std::uint64_t refusals_ = 0;
  std::size_t limit_ = DDPROF_MAX_UNWIND_RULES;
};

}  // namespace ddprof
