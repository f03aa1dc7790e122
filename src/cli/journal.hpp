#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/call_within.hpp"
#include "base/result.hpp"
#include "cli/options.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

// Where the profiler says what happens to it: --log-mode and --log-level. Without them notices and errors go
// to standard error. One line for a message, but for a terminal, where the hint of an error has its own. What
// is said about files, peers and processes may hold foreign strings: they are made printable.
class Journal {
 public:
  // `directory` is where relative names of files begin.
  Journal(const Options& options, const std::string& directory);

  // Whether lines can be written: the user should not learn it after a week. Makes the file. A file system
  // that hangs is an error.
  [[nodiscard]] Result<void> check() const;

  // The user's own stream, if lines go there.
  [[nodiscard]] std::optional<int> stream() const;

  void say(LogLevel level, std::string_view text) const;
  void say(const Error& error) const;

 private:
  enum class Place : std::uint8_t { stream, syslog, nowhere, file };

  // With a file system: at the start, when the program waits, and for each line.
  static constexpr std::chrono::milliseconds kStartPatience{2000}, kPatience{1000};

  void write(LogLevel level, std::string line) const;
  void append(const std::string& line) const;

  Place place_ = Place::stream;
  UserStream stream_;
  std::string path_;
  LogLevel level_;
  pid_t starter_;  // the process that becomes the program, or waits for it: it must not hang
  PatientCalls calls_{kPatience};
};

}  // namespace ddprof
