#include "cli/terminal.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/result.hpp"
#include "encode/display_text.hpp"
#include "process/process_identity.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kPlainWidth = 100, kLeastWidth = 40, kMostWidth = 10'000;

}  // namespace

int print_output(const std::string& foreign) {
  const std::string text = printable_lines(foreign);
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return is_written ? 0 : 1;
}

void say_text(std::string_view text, std::string_view before) {
  print_to_standard_error(fmt::format("{}{}", before, printable_lines(text)));
}

std::size_t terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const std::string_view text = columns != nullptr ? columns : "";
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && width >= kLeastWidth && width <= kMostWidth ? width : kPlainWidth;
}

std::size_t text_width() {
  constexpr std::size_t kNarrowest = 60, kWidest = 200;
  std::size_t width = 80;
  winsize size{};
  const char* variable = std::getenv("COLUMNS");
  const std::string_view columns = variable != nullptr ? variable : "";
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    width = size.ws_col;
  } else {
    std::from_chars(columns.data(), columns.data() + columns.size(), width);
  }
  return std::clamp(width, kNarrowest, kWidest);
}

bool may_draw_progress(bool starts_program, Pid attached) {
  if (starts_program || ::isatty(STDERR_FILENO) != 1) return false;
  // By name: asking the file itself could hang, where the target chose it.
  const std::string terminal = read_descriptor_link(Pid{::getpid()}, STDERR_FILENO);
  return read_descriptor_link(attached, STDOUT_FILENO) != terminal &&
         read_descriptor_link(attached, STDERR_FILENO) != terminal;
}

std::string fresh_line() {
  if (::isatty(STDERR_FILENO) != 1) return {};
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return "\n";
  // A row of spaces: at the start of a line it fills that line, else it reaches into the next one.
  return std::string(size.ws_col, ' ') + '\r';
}

bool wants_color(int fd) {
  const char* const refusal = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool is_refused = refusal != nullptr && *refusal != 0;
  const bool is_plain = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(fd) == 1 && !is_refused && !is_plain;
}

namespace {

bool is_in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// The command that pages; empty: none.
std::string pager_command() {
  const char* const chosen = std::getenv("PAGER");
  const char* const terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return {};
  if (chosen != nullptr) return std::string_view(chosen) == "cat" ? "" : chosen;
  return is_in_path("less") ? "less -FRX" : "";
}

bool fits_terminal(const std::string& text) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return true;
  return std::count(text.begin(), text.end(), '\n') < size.ws_row;
}

}  // namespace

int page_output(const std::string& foreign) {
  const std::string text = printable_lines(foreign);
  if (::isatty(STDOUT_FILENO) != 1 || fits_terminal(text)) return print_output(text);
  const std::string command = pager_command();
  if (command.empty()) return print_output(text);
  // Colours, where $PAGER is a plain less. There is one thread here.
  ::setenv("LESS", "FRX", 0);  // NOLINT(concurrency-mt-unsafe)
  std::fflush(stdout);
  // A reader who has seen enough leaves before the end; while the pager runs, Ctrl-C is its own.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  std::FILE* const pager = ::popen(command.c_str(), "w");
  if (pager == nullptr) return print_output(text);
  std::fwrite(text.data(), 1, text.size(), pager);
  const int status = ::pclose(pager);
  constexpr int kNotFound = 127;
  const bool is_shown = status != -1 && (!WIFEXITED(status) || WEXITSTATUS(status) < kNotFound - 1);
  return is_shown ? 0 : print_output(text);
}

}  // namespace ddprof
