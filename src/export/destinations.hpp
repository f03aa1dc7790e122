#pragma once

#include <memory>
#include <string>

#include "base/ids.hpp"
#include "export/destination.hpp"
#include "export/destination_options.hpp"
#include "export/profile_folder.hpp"

namespace ddprof {

// One profile for the whole run, or one per period.
bool is_periodic(const DestinationOptions& options);

// Whether profiles have no agent and no place of their own: they stay in the user's state directory.
[[nodiscard]] bool is_stored_here(const DestinationOptions& options);
// Where profiles are that have no agent and no place of their own, and how to look at the first; empty where
// they have one.
std::string stored_notice(const DestinationOptions& options, Pid target, const RunStamp& stamp);

// Whether files can be written where the user wants them, and in the format of their extension; makes the
// folder of -O DIR/. For what should be known before a program starts.
Result<void> check_output(const DestinationOptions& options);
// Whether requests can wait where they should when a peer does not answer.
Result<void> check_spool(const DestinationOptions& options);

// Files when they are asked for, or when profiles are sent nowhere; and each peer.
Result<std::unique_ptr<Destination>> make_destination(const DestinationOptions& options, Pid target,
                                                      const RunStamp& stamp, const Voice& voice);

}  // namespace ddprof
