#include "base/user_rights.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace ddprof {

namespace {

constexpr std::uint32_t kNobodysNumber = ~0U;  // changes nothing, and answers who we are

std::uint32_t file_user() { return static_cast<std::uint32_t>(::syscall(SYS_setfsuid, kNobodysNumber)); }
std::uint32_t file_group() { return static_cast<std::uint32_t>(::syscall(SYS_setfsgid, kNobodysNumber)); }

// The C library's functions would change all threads; these are the calls of one.
bool become(const UserRights& rights) {
  if (::syscall(SYS_setgroups, rights.groups.size(), rights.groups.data()) != 0) return false;
  ::syscall(SYS_setfsgid, rights.group);
  ::syscall(SYS_setfsuid, rights.user);
  return file_user() == rights.user && file_group() == rights.group;
}

bool drop_effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  for (auto& set : sets) set.effective = 0;
  return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

}  // namespace

bool take_on(const UserRights& rights) {
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  const bool is_user = become(rights);
  // The kernel makes a process that changes users undumpable, all of its threads.
  if (dumpable == 1) ::prctl(PR_SET_DUMPABLE, 1);
  return drop_effective_capabilities() && (is_user || file_user() != 0);
}

}  // namespace ddprof
