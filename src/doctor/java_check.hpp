#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "collect/finding.hpp"

namespace ddprof {

struct JavaProcess {
  Pid pid{};
  std::string name;
  bool has_frame_pointers = false;  // of the code that it generates
};

// Those that run now and may be looked into.
std::vector<JavaProcess> find_java_processes();
// Whether one with this command line and environment (as in /proc) keeps frame pointers.
bool keeps_frame_pointers(std::string_view command_line, std::string_view environment);

// Nothing where no Java runs whose stacks would be cut.
std::optional<Finding> check_java(std::span<const JavaProcess> processes);

}  // namespace ddprof
