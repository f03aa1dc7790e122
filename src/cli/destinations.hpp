#pragma once

#include <memory>
#include <string>

#include "base/ids.hpp"
#include "cli/options.hpp"
#include "export/destination.hpp"
#include "export/profile_folder.hpp"

namespace ddprof {

// Puts a slash behind the name of an output that is a folder: from then on its name alone says so. An error:
// its file system hangs.
Result<void> settle_output(Options& options);

// One profile for the whole run, or one per period.
bool is_periodic(const Options& options);

// Whether profiles have no agent and no place of their own: they stay in the user's state directory.
[[nodiscard]] bool is_kept_here(const Options& options);
// Where profiles are that have no agent and no place of their own, and how to look at the first; empty where
// they have one.
std::string kept_notice(const Options& options, Pid target, const RunStamp& stamp);

// Whether files can be written where the user wants them, and in the format of their extension; makes the
// folder of -O DIR/. For what should be known before a program starts.
Result<void> check_output(const Options& options, const std::string& working_directory);
// Whether requests can wait where they should when a peer does not answer.
Result<void> check_spool(const Options& options, const std::string& working_directory);

// Files when they are asked for, or when profiles are sent nowhere; and each peer.
Result<std::unique_ptr<Destination>> make_destination(const Options& options,
                                                      const std::string& working_directory, Pid target,
                                                      const RunStamp& stamp, const Voice& voice);

}  // namespace ddprof
