#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
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
  const std::string_view columns = std::getenv("COLUMNS") == nullptr ? "" : std::getenv("COLUMNS");
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

}  // namespace ddprof
