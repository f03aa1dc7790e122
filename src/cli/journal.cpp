#include "cli/journal.hpp"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/output_file.hpp"
#include "cli/option_table.hpp"
#include "encode/display_text.hpp"
#include "runtime/call_apart.hpp"

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
    : stream_(mode_of(options) == "stdout" ? STDOUT_FILENO : STDERR_FILENO),
      level_(options.log_level),
      starter_(::getpid()) {
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
  if (place_ != Place::file) return {};
  const auto checked = ask_file_system(kStartPatience, [this] { return check_log(path_); });
  if (checked && checked->ok()) return {};
  Error error = checked ? checked->error() : does_not_answer("open " + path_);
  error.message.insert(0, "--log-mode: ");
  return with_hint(std::move(error), "another file, or syslog");
}

// Opened for each line: logs are moved away and begun anew while we run. Neither a reader nor a file system
// is waited for. What cannot be written there is said on standard error, as far as that is at hand.
void Journal::append(const std::string& line) const {
  const std::string text = fmt::format("{} ddprof[{}]: {}\n", timestamp(), ::getpid(), line);
  const auto append = [path = path_, text] { return append_line(path, text); };
  const auto written = ::getpid() == starter_ ? ask_file_system(kPatience, append) : calls_.call(append);
  if (written && written->ok()) return;
  const Error error = written ? written->error() : does_not_answer("write " + path_);
  stream_.print(fmt::format("ddprof: {} (not in the log: {})\n", line, printable(error.message)));
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
      return ::syslog(LOG_DAEMON | syslog_priority(level), "%s", line.c_str());
    case Place::stream:
      std::fflush(stdout);
      return stream_.print(fmt::format("ddprof: {}\n", line));
    case Place::file:
      break;
  }
  append(line);
}

}  // namespace ddprof
