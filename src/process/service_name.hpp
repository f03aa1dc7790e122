#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "process/foreign_memory.hpp"

namespace ddprof {

// What a process calls its service. Shared by processes that are forked without exec.
struct ServiceName {
  std::string name;
  bool is_configured = false;  // by its environment, which children inherit; else its executable's name
};

// From the bytes of /proc/PID/environ: DD_SERVICE, else OTEL_SERVICE_NAME, else service.name among
// OTEL_RESOURCE_ATTRIBUTES. Empty without any. A process can write there what it likes: what is not fit to be
// shown is left out, and what is too long is cut.
std::string service_in_environment(std::string_view environment);

// The value of a variable in the bytes of /proc/PID/environ; empty without it.
std::string_view variable_in_environment(std::string_view environment, std::string_view variable);
// Among "service.name=shop,service.version=2", OpenTelemetry's list of resource attributes; empty without it.
std::string_view resource_attribute(std::string_view attributes, std::string_view name);
// On one line, and not too long: a process can write what it likes.
std::string fit_to_be_shown(std::string_view text);

// A variable as the process got it when it started; empty without it, and where we may not look. The process
// can write there what it likes.
std::string read_variable(Pid pid, std::string_view name);

// The file name behind a link such as /proc/PID/exe; empty without one.
std::string executable_in_link(std::string_view link);
// The name of the file that the process runs; empty for the kernel's own threads, and where we may not look.
std::string read_executable_name(Pid pid);

// As it is now. `inherited` (null: nothing) holds when the process is gone already, or may not be looked
// into.
std::shared_ptr<const ServiceName> read_service_name(Pid pid, std::shared_ptr<const ServiceName> inherited,
                                                     ForeignMemory& memory);

}  // namespace ddprof
