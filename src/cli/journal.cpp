#include "cli/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/unique_fd.hpp"
#include "cli/option_table.hpp"
#include "encode/display_text.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

namespace {

int syslog_priority(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return LOG_DEBUG;
    case LogLevel::informational:
      return LOG_INFO;
    case LogLevel::notice:
      return LOG_NOTICE;
    case LogLevel::warning:
      return LOG_WARNING;
    case LogLevel::error:
      break;
  }
  return LOG_ERR;
}

// Opened for each line: logs are moved away and begun anew while we run. Never waits for a reader.
UniqueFd open_log(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  return UniqueFd(::open(path.c_str(), kFlags, 0600));
}

std::string timestamp() {
  std::tm now{};
  const std::time_t seconds = std::time(nullptr);
  ::gmtime_r(&seconds, &now);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ", &now);
  return stamp.data();
}

std::string_view mode_of(const Options& options) {
  const bool is_chosen =
      !options.origins.empty() && origin_of(options, "log-mode").kind != Origin::Kind::default_value;
  if (!is_chosen || options.log_mode == "/dev/stderr") return "stderr";
  return options.log_mode == "/dev/stdout" ? "stdout" : std::string_view(options.log_mode);
}

}  // namespace

Journal::Journal(const Options& options, const std::string& directory)
    : stream_(mode_of(options) == "stdout" ? STDOUT_FILENO : STDERR_FILENO), level_(options.log_level) {
  const std::string_view mode = mode_of(options);
  if (mode == "stdout" || mode == "stderr") {
    if (options.quiet) level_ = LogLevel::error;
  } else if (mode == "syslog" || mode == "disabled") {
    place_ = mode == "syslog" ? Place::syslog : Place::nowhere;
  } else {
    place_ = Place::file;
    path_ = mode.starts_with('/') ? std::string(mode) : fmt::format("{}/{}", directory, mode);
  }
}

Result<void> Journal::check() const {
  if (place_ != Place::file || open_log(path_).is_open()) return {};
  return with_hint(errno_error(errno, "--log-mode: open " + path_), "another file, or syslog");
}

std::optional<int> Journal::stream() const {
  return place_ == Place::stream ? std::optional(stream_.descriptor()) : std::nullopt;
}

void Journal::say(LogLevel level, std::string_view text) const {
  if (level >= level_) write(level, printable(text));
}

void Journal::say(const Error& error) const {
  std::string line = printable(error.message);
  const bool has_lines = place_ == Place::stream && stream_.is_terminal();
  if (!error.hint.empty()) line += (has_lines ? "\n  try: " : "; try: ") + printable(error.hint);
  write(LogLevel::error, std::move(line));
}

void Journal::write(LogLevel level, std::string line) const {
  constexpr std::size_t kLongest = 2000;  // a pipe takes 4096 bytes at once, or none
  if (line.size() > kLongest) line.replace(kLongest, line.size(), " …");
  switch (place_) {
    case Place::nowhere:
      return;
    case Place::syslog:
      return ::syslog(LOG_DAEMON | syslog_priority(level), "ddprof: %s", line.c_str());
    case Place::stream:
      std::fflush(stdout);
      return stream_.print(fmt::format("ddprof: {}\n", line));
    case Place::file:
      break;
  }
  const UniqueFd fd = open_log(path_);
  if (fd.is_open()) print_to(fd.get(), fmt::format("{} ddprof[{}]: {}\n", timestamp(), ::getpid(), line));
}

}  // namespace ddprof
