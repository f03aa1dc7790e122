#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text_pattern.hpp"
#include "process/process_table.hpp"

namespace ddprof {

// What a filter asks of a process. What could not be read is empty, and matches nothing.
struct FilterFacts {
  std::string name;        // as /proc/PID/comm has it: 15 bytes at most
  std::string executable;  // file name of what it runs
  std::optional<std::uint32_t> user;
  std::string cgroup;
  std::string container_id;
  std::string service;
};

FilterFacts gather_facts(ProcessTable& processes, Process& process);

// One condition: "name:redis*", "name:/^redis-/", "user:www-data", "cgroup:*/kubepods*", "container:3fa9",
// "service:shop". Names, groups and services are globs over the whole text, in which * also stands for
// slashes, or regular expressions between slashes, of which any part of the text may match.
class ProcessCondition {
 public:
  static Result<ProcessCondition> parse(const std::string& text);

  [[nodiscard]] bool matches(const FilterFacts& facts) const;

 private:
  enum class Fact : std::uint8_t { name, user, cgroup, container, service };

  ProcessCondition() = default;
  static Result<ProcessCondition> parse_value(Fact fact, const std::string& value);
  [[nodiscard]] bool matches_text(const std::string& text) const;

  Fact fact_ = Fact::name;
  std::string value_;                   // glob, or prefix of a container's id
  std::optional<TextPattern> pattern_;  // instead of the glob
  std::uint32_t user_ = 0;
};

// Which processes of a host are profiled: those that no exclusion matches, and one inclusion if there are
// any.
class ProcessFilter {
 public:
  static Result<ProcessFilter> parse(const std::vector<std::string>& include,
                                     const std::vector<std::string>& exclude);

  [[nodiscard]] bool is_empty() const { return include_.empty() && exclude_.empty(); }
  [[nodiscard]] bool admits(const FilterFacts& facts) const;

 private:
  std::vector<ProcessCondition> include_, exclude_;
};

}  // namespace ddprof
