#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "process/address_space.hpp"
#include "process/file_registry.hpp"
#include "process/jit_runtime.hpp"
#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "session/periods.hpp"

namespace ddprof {

// The profile of one kind.
struct ClosedPart {
  std::string kind;
  AggregatedProfile profile;
  std::uint32_t visible_columns = 0;     // the first counts samples; those behind these are internal
  std::vector<TaskNames> labels;         // of profile.threads
  std::vector<std::uint32_t> processes;  // of profile.threads: ProfileSample::process
  std::string period_type, period_unit;
  std::int64_t period = 0;
  std::string default_column;
};

// Everything that naming, encoding and sending one period need, as values: it crosses to the finishing
// thread.
struct ClosedPeriod {
  PeriodTimes times;
  bool is_last = false;  // of the run
  std::vector<ClosedPart> parts;
  std::vector<ProcessIdentity> processes;  // whose the samples are
  ProcessIdentity target;                  // what the target publishes of itself
  CodeFiles files;
  std::vector<CodeMapping> mappings;                 // one per distinct piece of code
  absl::flat_hash_map<FileId, JitRuntime> runtimes;  // of processes with generated code, by that
  std::vector<std::string> comments;
  SessionHandover handover;  // what holds once this period has left
};

}  // namespace ddprof
