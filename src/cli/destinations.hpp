#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/ids.hpp"
#include "cli/options.hpp"
#include "export/destination.hpp"
#include "export/profile_folder.hpp"

namespace ddprof {

// Our folder in one of the user's base directories, as XDG names them; empty where there is none.
std::string user_folder(const char* variable, const char* below_home);

// One profile for the whole run, or one per period.
bool is_periodic(const Options& options);

// Where profiles are that have no agent and no place of their own, and how to look at the first; empty where
// they have one.
std::string kept_notice(const Options& options, Pid target, const RunStamp& stamp);

// What is heard of profiles on their way: troubles, and that they are over.
struct Voice {
  std::function<void(const Error&)> say;
  std::function<void(const std::string&)> say_notice;
  std::function<void(const Profile&)> on_written;  // the file of a whole run
};

// Files when they are asked for, or when nobody takes profiles; and everybody who does.
Result<std::unique_ptr<Destination>> make_destination(const Options& options,
                                                      const std::string& working_directory, Pid target,
                                                      const RunStamp& stamp, const Voice& voice);

}  // namespace ddprof
