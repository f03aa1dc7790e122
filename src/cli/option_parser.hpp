#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// The value of an environment variable, if it is set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The content of a file; not_found when there is none.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// From weakest to strongest: defaults, config file, environment, command line. `args` is without argv[0].
// Every value is checked, and the combination is one that can be run.
Result<Options> parse_options(std::span<const char* const> args, const EnvironmentLookup& environment,
                              const FileReader& read_file);

// For a command line that parse_options() has refused: the program that it names, to be run without
// profiling, with no more rights than it was meant to have. A service must not stay down because of its
// profiler. Nothing where there is no program, where it is not known where it begins, or which rights it
// should have.
std::optional<Options> unprofiled_options(std::span<const char* const> args,
                                          const EnvironmentLookup& environment, const FileReader& read_file);

// Overwrites the values of secret options in the arguments, which must have been read already: every user of
// the machine sees them in /proc/PID/cmdline, also those of our children.
void hide_secret_arguments(std::span<char* const> args);

}  // namespace ddprof
