#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "process/process_context.hpp"

namespace ddprof {

// What a process says of itself to those who observe it, and where it lives. A process can say what it likes:
// all texts are fit to be shown.
struct ProcessIdentity {
  std::string service;               // configured, published, or else named after its program
  std::string program;               // what it is called without what it publishes: see ServiceName
  std::string environment, version;  // "prod", "1.2"; empty: not said
  std::string container_id;          // empty: in none that we know the names of
  std::string entity_id;             // see read_entity_id()
  std::string external_environment;  // DD_EXTERNAL_ENV
  std::string instance_id;           // of its process context
  std::string process_tags;          // likewise

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// From the bytes of /proc/PID/environ and from what the process publishes. Variables come first: DD_SERVICE,
// DD_ENV and DD_VERSION, then OpenTelemetry's. `executable` is the name of its program.
ProcessIdentity said_identity(std::string_view environment, const ProcessContext& context,
                              std::string_view executable);

// None: it is gone, or we may not look.
std::optional<ProcessIdentity> read_process_identity(Pid pid, ForeignMemory& memory);

}  // namespace ddprof
