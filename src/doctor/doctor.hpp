#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/finding.hpp"

namespace ddprof {

struct DoctorOptions {
  // Of the agent, as the options of the same names.
  std::string url;
  std::string host = "localhost";
  std::int64_t port = 8126;
  bool is_named = true;  // by the user; else it is where an agent listens by default
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<Ability> abilities;
  bool is_in_container = false;
  bool can_profile = false;  // at all
};

// Inspects this machine as this process sees it. Changes nothing; takes at most the seconds that an agent and
// debuginfod servers take to not answer.
Diagnosis examine(const DoctorOptions& options);

}  // namespace ddprof
