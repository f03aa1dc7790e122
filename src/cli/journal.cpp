#include "cli/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/unique_fd.hpp"
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

// Opened for each line: logs are moved away and begun anew while we run.
void append_to(const std::string& path, std::string_view text) {
  std::tm now{};
  const std::time_t seconds = std::time(nullptr);
  ::gmtime_r(&seconds, &now);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ", &now);
  const std::string line = fmt::format("{} ddprof[{}]: {}\n", stamp.data(), ::getpid(), text);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  [[maybe_unused]] ssize_t written = ::write(fd.get(), line.data(), line.size());
}

}  // namespace

Journal::Journal(std::string mode, bool is_mode_chosen, LogLevel level, const std::string& directory)
    : mode_(is_mode_chosen ? std::move(mode) : "stderr"), level_(level) {
  const bool is_file = mode_ != "stdout" && mode_ != "stderr" && mode_ != "syslog" && mode_ != "disabled";
  if (is_file && !mode_.starts_with('/')) mode_ = directory + "/" + mode_;
}

void Journal::say(LogLevel level, std::string_view text) const {
  if (level >= level_) write(level, text);
}

void Journal::say(const Error& error) const {
  write(LogLevel::error, error.hint.empty() ? error.message : error.message + "\n  try: " + error.hint);
}

void Journal::write(LogLevel level, std::string_view text) const {
  if (mode_ == "disabled") return;
  if (mode_ == "syslog") {
    ::syslog(LOG_DAEMON | syslog_priority(level), "ddprof: %.*s", static_cast<int>(text.size()), text.data());
  } else if (mode_ == "stdout" || mode_ == "stderr") {
    const std::string line = fmt::format("ddprof: {}\n", text);
    if (mode_ == "stderr") return print_to_standard_error(line);
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  } else {
    append_to(mode_, text);
  }
}

}  // namespace ddprof
