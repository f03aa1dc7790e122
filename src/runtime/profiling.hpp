#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "collect/engine.hpp"
#include "export/destination.hpp"
#include "runtime/control.hpp"
#include "runtime/privileges.hpp"
#include "session/session.hpp"

namespace ddprof {

// CPU time that the kernel has charged to a process and to those of its children that it has waited for, by
// /proc/PID/stat. Counters of events miss the very start and end of each task, which is a tenth of a process
// that lives for a millisecond; this does not. Its resolution is a clock tick (10 ms). The last reading is
// shared by all workers: a process that ends while none is there was read by the one before.
class ChargedTime {
 public:
  // What was charged before now does not count.
  static Result<ChargedTime> create(Pid pid);

  // The time charged so far, or an estimate from the last reading once the process is gone. `counted` is what
  // the collector counted until now.
  std::int64_t at(std::int64_t counted);

 private:
  struct Reading {
    std::int64_t charged = 0;
    std::int64_t counted = 0;  // by the collector, at that time
  };

  ChargedTime(Pid pid, MappedRegion last) : pid_(pid), before_(read().value_or(0)), last_(std::move(last)) {}
  [[nodiscard]] std::optional<std::int64_t> read() const;

  Pid pid_;
  std::int64_t before_;
  MappedRegion last_;  // a Reading
};

// Everything that the user decided, for any way of starting.
struct ProfilingRequest {
  std::shared_ptr<const Engine> engine;
  EngineOptions collecting;
  bool has_library = false;                // libddprof.so is to be put into the target
  std::shared_ptr<const Control> control;  // of a program that profiles itself; null: there is none
  std::vector<std::string> vain;           // for it: what was asked for and cannot be had
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
