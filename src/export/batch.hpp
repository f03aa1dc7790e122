#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "process/process_identity.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// What leaves the machine at the end of a period: one profile of each kind.
struct Batch {
  struct Part {
    std::string kind;  // "cpu", "alloc"
    Profile profile;   // the names of its columns are those of no other kind
  };

  std::uint64_t sequence = 0;  // counts the batches of a run from 0
  bool is_last = false;        // of the run, as far as is known
  Nanoseconds start{}, end{};  // Unix time
  std::vector<Part> parts = {};
  // Whose the samples are: ProfileSample::process is a position here. The first is no process.
  std::vector<ProcessIdentity> processes = {};
  ProcessIdentity target = {};  // what the program that is profiled publishes of itself; empty for a host

  // One profile and its time.
  static Batch of(Profile profile, std::uint64_t sequence, std::string kind = "cpu");

  // All kinds as columns of one profile, as files have them. It is made in `space` when there are several.
  [[nodiscard]] const Profile& whole(Profile& space) const;
};

}  // namespace ddprof
