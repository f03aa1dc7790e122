#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "process/process_table.hpp"

namespace ddprof {

// The processes of a period, each identity once: samples carry a position in this list. For one thread.
class IdentityTable {
 public:
  // The position of a process, whose names must live until take(); 0: it has no service (a thread of the
  // kernel, time of no known process).
  std::uint32_t add(Pid pid, const TaskNames& names);
  // Closes the period. A process that was gone before it could be inspected is given what others of its
  // service and container have in common.
  std::vector<ProcessIdentity> take();

 private:
  using Place = std::pair<std::string, std::string>;  // service as labelled, and container

  std::vector<ProcessIdentity> period_{1};
  std::map<ProcessIdentity, std::uint32_t> positions_;
  std::map<std::pair<std::int32_t, const ProcessIdentity*>, std::uint32_t> of_threads_;  // by pid
  std::map<Place, ProcessIdentity> common_;
};

}  // namespace ddprof
