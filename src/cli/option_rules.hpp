#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"
#include "export/local_agent.hpp"
#include "process/process_search.hpp"

namespace ddprof {

// What the settings mean together: the command (wrap, attach, global), the events, the service's name. Fails
// on combinations that cannot be run.
Result<void> apply_option_rules(Options& options);

// Holds the address of an agent to what it can be.
Result<void> check_agent_url(Options& options);

// Without an agent there must be a key and a place. Who typed --agentless is told what is wrong; one that a
// whole cluster has in its environment is told and left alone, and an agent is used. An agent's address in
// the environment is not the intake's.
Result<void> check_intake(Options& options);

// Holds what is said about a collector to what it can be.
Result<void> check_otlp(Options& options);

// Holds what is said about a Pyroscope server to what it can be.
Result<void> check_pyroscope(Options& options);

// Where it was not chosen: profiles that are sent to Datadog have the times of their samples, those in files
// have not. Other receivers get times only when they were asked for: Pyroscope refuses them over OTLP.
void choose_timeline(Options& options);

// Sets the URL to where an agent listens by default, if something listens there. Not for `record`, whose
// profile is its file, nor when the user said where profiles go. A stranger's listener is not used, and a
// warning says how to name it.
void find_agent(Options& options, const AgentProbe& probe);

// Puts a slash behind the name of an output that is a folder: from then on its name alone says so. An error:
// its file system hangs.
Result<void> settle_output(Options& options);

// Whether what was typed behind -p and --container can be meant; which processes there are is not asked.
[[nodiscard]] Result<void> check_attach(const Options& options);
// The processes that are meant, as they are now.
[[nodiscard]] Result<AttachChoice> choose_processes(const Options& options, const ProcessSearch& search);
// "-p 12,34", as it was typed.
[[nodiscard]] std::string attach_text(const Options& options);

}  // namespace ddprof
