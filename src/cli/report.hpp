#pragma once

#include <cstddef>
#include <string>

#include "profile/profile.hpp"

namespace ddprof {

struct ReportOptions {
  std::string title = {};         // what was profiled: a command, a file
  std::size_t top = 20;           // functions to list
  std::size_t width = 100;        // columns of the terminal
  double min_path_percent = 5.0;  // paths below are left out of the tree
  bool color = false;
};

// A profile as text for a person: what it is, the top functions, the hottest paths, threads, and what was
// missed.
std::string render_report(const Profile& profile, const ReportOptions& options = {});

}  // namespace ddprof
