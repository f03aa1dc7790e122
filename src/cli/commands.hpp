#pragma once

#include "base/result.hpp"
#include "cli/options.hpp"
#include "cli/stored_profiles.hpp"

namespace ddprof {

inline constexpr int kExitUsage = 2;  // the command line made no sense

// Does what the options ask for and returns the exit status. For the wrapper it returns only on failure: else
// this process has become the target.
int run_command(const Options& options);

// ddprof convert IN OUT: reads a profile of any format that we know and writes it in the one that the
// extension of OUT, or --to, names. "-" is standard input or output. Returns the exit status.
int convert(const Options& options);

// ddprof doctor. The exit status: 0 when profiling works at all, else 1.
int doctor(const Options& options);

// ddprof list [DIR]: the profiles that are kept, the newest last, and what waits to be sent. Returns the exit
// status.
int list(const Options& options);

// ddprof report [FILE|DIR…]: reads profiles, merges several, prints what they hold. Returns the exit status.
int report(const Options& options);

// --since, --until and --service of the command line.
Result<ProfileChoice> profile_choice(const Options& options);

// Where profiles are kept when no other place was named. Fails when there is no such place.
Result<std::string> stored_folder();

}  // namespace ddprof
