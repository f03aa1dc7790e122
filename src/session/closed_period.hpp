#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/address_space.hpp"
#include "process/file_registry.hpp"
#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "session/continuity.hpp"

namespace ddprof {

// Everything that naming, encoding and sending one period need, as values: it crosses to the finishing
// thread.
struct ClosedPeriod {
  std::uint64_t sequence = 0;
  bool is_last = false;  // of the run
  AggregatedProfile profile;
  std::uint32_t visible_columns = 0;          // the columns behind these are internal
  std::optional<std::uint32_t> count_column;  // counts samples
  std::vector<TaskNames> labels;              // of profile.threads
  CodeFiles files;
  std::vector<CodeMapping> mappings;  // one per distinct piece of code
  Nanoseconds unix_start{};
  std::string period_type, period_unit;
  std::int64_t period = 0;
  std::string default_column;
  std::vector<std::string> comments;
  Legacy legacy;  // what holds once this period has left
};

}  // namespace ddprof
