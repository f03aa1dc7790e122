#pragma once

// For tests: work that changes the process for good is done by one of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/unique_fd.hpp"

namespace ddprof {

// What work() returned in a forked child; "ended with status N" when it did not come that far.
template <typename Work>
std::string in_child(Work work) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return "no pipe";
  UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = work();
    ssize_t written = ::write(writer.get(), text.data(), text.size());
    std::_Exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  writer.reset();
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::read(reader.get(), buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : "ended with status " + std::to_string(status);
}

// The lines of /proc/self/status that begin so, as they are.
inline std::string status_lines(const std::string& beginning) {
  std::ifstream file("/proc/self/status");
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(beginning)) found += line + "\n";
  }
  return found;
}

}  // namespace ddprof
