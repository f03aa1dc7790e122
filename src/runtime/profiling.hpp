#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collect/engine.hpp"
#include "export/destination.hpp"
#include "runtime/charged_time.hpp"
#include "runtime/privileges.hpp"
#include "session/session.hpp"

namespace ddprof {

// Everything that the user decided, for any way of starting.
struct ProfilingRequest {
  std::shared_ptr<const Engine> engine;
  EngineOptions collecting;
  SessionOptions session;
  std::function<Result<std::unique_ptr<Destination>>(Pid target, bool samples_kernel)> make_destination;
  std::optional<int> nice;
  std::string cpu_affinity;  // hexadecimal mask
  PrivilegeLimits privileges;
  bool has_fault_info = true;
  std::function<void(const Error&)> say_error;  // one line on the user's terminal or log
  // Once all is ready, and where profiles go.
  std::function<void(Pid target, const std::string& place)> say_start;
  std::function<void(const std::string&)> say_notice;
  std::function<void(const Summary&)> say_summary;
  std::optional<int> log_stream;  // the descriptor that messages go to, if it is one of the user's
};

// Niceness and affinity of the calling process, as asked for.
Result<void> apply_limits(const ProfilingRequest& request);

// An opened collector and where its profiles go: all that can fail before the target runs.
struct PreparedProfiling {
  std::unique_ptr<Collector> collector;
  std::unique_ptr<Destination> destination;
  std::shared_ptr<ChargedTime> charged;  // of a target that is not our child
};

Result<PreparedProfiling> prepare(const Target& target, const ProfilingRequest& request);
// What the session of a worker needs to know beyond the request.
SessionOptions session_options(const PreparedProfiling& prepared, const Target& target,
                               const ProfilingRequest& request);

}  // namespace ddprof
