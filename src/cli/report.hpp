#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "profile/profile.hpp"
#include "report/filter.hpp"
#include "report/live_growth.hpp"

namespace ddprof {

struct ReportOptions {
  std::string title = {};         // what was profiled: a command, a file
  std::string sample_type = {};   // the column to look at; empty: the profile's default
  std::size_t top = 0;            // rows of a table; 0: as many as fit one screen, and only the usual tables
  std::size_t width = 100;        // columns of the terminal
  double min_path_percent = 5.0;  // paths below are left out of the tree
  std::string own = {};           // what is the program's own code: a regular expression; empty: the rules
  bool color = false;
  bool json = false;
  ReportFilter filter = {};
  std::optional<LiveGrowth> growth = {};  // of live bytes, if the profile is of several periods
  // Each of these replaces the usual sections.
  bool modules = false;
  bool lines = false;
  std::string callers = {}, callees = {};  // a function
  std::string annotate = {};               // a function
  std::string source_dir = {};             // where its source is
};

// A profile for a person, or as JSON for a program: what it is, the headline, the top functions, the hottest
// paths, threads, processes, and what was missed. Fails when the options ask for what the profile does not
// have.
Result<std::string> render_report(const Profile& profile, const ReportOptions& options = {});

// What a report begins with and a recording ends with, as text: the headline, and below it who pays. Empty
// when nothing can be said.
std::string answer_text(const Profile& profile, std::size_t width, bool color);

}  // namespace ddprof
