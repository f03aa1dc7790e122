#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "process/confinement.hpp"
#include "process/process_context.hpp"

namespace ddprof {

// Who a process is: what it was started with, what it publishes, and where it lives. A process can say what
// it likes: all texts are fit to be shown.
struct ProcessIdentity {
  std::int64_t pid = 0;              // 0: of several processes, or of none
  std::string service;               // configured, published, or else named after its program; empty: none
  std::string program;               // the same without what it publishes: the label of its samples
  std::string environment, version;  // "prod", "1.2"; empty: not said
  std::string container_id;          // empty: in none that we know the names of
  std::string entity_id;             // how a Datadog agent finds its container: see read_entity_id()
  std::string external_environment;  // DD_EXTERNAL_ENV: what the orchestrator says of it
  std::string instance_id;           // published; most processes have none
  std::string process_tags;          // likewise
  bool is_configured = false;        // `program` is from its environment, which children inherit
  bool is_read = false;              // false: it was gone, or could not be inspected

  friend auto operator<=>(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// From the bytes of /proc/PID/environ: DD_SERVICE, DD_ENV and DD_VERSION, else OpenTelemetry's variables.
// `executable` is the name of its program. What is not fit to be shown is left out, and what is too long is
// cut.
ProcessIdentity identity_in_environment(std::string_view environment, std::string_view executable);
// What a process publishes counts where its environment says nothing.
ProcessIdentity with_published(ProcessIdentity identity, const ProcessContext& context);

// As it is now, without what it publishes.
ProcessIdentity read_process_identity(Pid pid, const Confinement& confinement, ForeignMemory& memory);

// On one line, and not too long: a process can write what it likes.
std::string fit_to_be_shown(std::string_view text);
// A variable as the process got it when it started; empty without it, and where we may not look. The process
// can write there what it likes.
std::string read_variable(Pid pid, std::string_view name);
// The file name behind a link such as /proc/PID/exe; empty without one.
std::string executable_in_link(std::string_view link);
// The name of the file that the process runs; empty for the kernel's own threads, and where we may not look.
std::string read_executable_name(Pid pid);
// What the kernel calls the process: the beginning of its program's name, or what it has chosen. Empty when
// it is gone.
std::string read_process_name(Pid pid);
// Where a descriptor of the process leads, as a path; empty where we may not look.
std::string read_descriptor_link(Pid pid, int descriptor);

}  // namespace ddprof
