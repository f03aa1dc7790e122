#pragma once

#include <cstdint>
#include <vector>

namespace ddprof {

// What the kernel asks of a thread that opens a file: who it is.
struct UserRights {
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::vector<std::uint32_t> groups{};

  friend bool operator==(const UserRights&, const UserRights&) = default;
};

// The rights of a user without any group that others share.
constexpr std::uint32_t kNoGroup = 65534;
[[nodiscard]] inline UserRights rights_of_user(std::uint32_t user) { return {user, kNoGroup, {}}; }

// From now on the calling thread, and no other, opens files as this user and without capabilities. A profiler
// that may not become another user (no CAP_SETUID) stays its own user, without capabilities. False: neither
// can be had, and the thread may still open what this user may not.
[[nodiscard]] bool take_on(const UserRights& rights);

}  // namespace ddprof
