#include "cli/pager.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "cli/terminal.hpp"
#include "encode/display_text.hpp"

namespace ddprof {

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
  ::setenv("LESS", "FRX", 0);  // colours, where $PAGER is a plain less
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
