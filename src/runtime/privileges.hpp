#pragma once

#include <string>

#include "base/result.hpp"

namespace ddprof {

// What a process is asked to give up, for good.
struct PrivilegeLimits {
  bool drops_capabilities = false;
  std::string user;  // a name, UID, or UID:GID; empty: as it is

  [[nodiscard]] bool any() const { return drops_capabilities || !user.empty(); }
};

// Gives up what is asked for, in the one order that works, and looks whether it is gone. On failure the
// process may have lost some of it already: it is not fit to run anything.
Result<void> limit_privileges(const PrivilegeLimits& limits);

// Whether the above has a chance, before anything is started for it.
Result<void> check_can_limit(const PrivilegeLimits& limits);

// Empties all five sets of the calling thread: ambient, bounding, inheritable, permitted, effective. After
// exec even root has none. Needs CAP_SETPCAP unless the bounding set is empty already.
Result<void> drop_capabilities();

// Real, effective and saved user and group, and the user's groups. Nothing to do for who is that user.
Result<void> switch_user(const std::string& user);

// No exec grants anything any more: neither set-user-ID bits nor file capabilities.
Result<void> forbid_new_privileges();

// This program was installed with the rights of its file's owner (set-user-ID). A profiler runs what it is
// told to, as whom it is told to be: with such rights everybody could do everything.
Result<void> refuse_borrowed_identity();

}  // namespace ddprof
