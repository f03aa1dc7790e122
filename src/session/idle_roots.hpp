#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "process/process_table.hpp"
#include "session/continuity.hpp"

namespace ddprof {

// Tells a user who attached to a master, or to a shell, that it is not the one who works: all samples are of
// processes that it started.
class IdleRoots {
 public:
  // None for a program that we started, and for the whole host.
  explicit IdleRoots(std::vector<Pid> roots) : roots_(std::move(roots)) {}

  // While they live.
  void name(const ProcessTable& processes);
  // One more sample.
  void add(Pid pid) {
    if (pid != last_ && !roots_.empty()) add_other(pid);
  }
  void resume(const SessionHandover& handover);
  void hand_over(SessionHandover& handover) const;

  // Empty when there is nothing to tell.
  [[nodiscard]] std::string notice() const;

 private:
  void add_other(Pid pid);

  std::vector<Pid> roots_;
  std::string name_;  // of the first
  Pid last_{};
  absl::flat_hash_set<std::int32_t> children_;  // that were sampled
  bool has_busy_root_ = false;
  bool has_busy_child_ = false;
  bool is_first_worker_ = true;
};

}  // namespace ddprof
