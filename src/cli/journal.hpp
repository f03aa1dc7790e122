#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// Where the profiler says what happens to it: --log-mode and --log-level. Without them errors go to standard
// error.
class Journal {
 public:
  // `directory` is where relative names of files begin.
  Journal(std::string mode, bool is_mode_chosen, LogLevel level, const std::string& directory);

  void say(LogLevel level, std::string_view text) const;
  void say(const Error& error) const;

 private:
  void write(LogLevel level, std::string_view text) const;

  std::string mode_;  // "stdout", "stderr", "syslog", "disabled", or the path of a file
  LogLevel level_;
};

}  // namespace ddprof
