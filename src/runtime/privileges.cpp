#include "runtime/privileges.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace ddprof {

namespace {

constexpr std::size_t kCapabilityWords = 2;  // of 32 capabilities each, in version 3
using CapabilitySets = std::array<__user_cap_data_struct, kCapabilityWords>;

// The kernel's own interface, without libcap: glibc has no wrapper.
Result<CapabilitySets> read_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  CapabilitySets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return errno_error(errno, "capget");
  return sets;
}

bool has_capability(unsigned capability) {
  auto sets = read_capabilities();
  return sets && ((*sets)[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

// 1 or 0; -1 for a number that this kernel does not know, which is how the list ends.
int bounding_bit(int capability) { return ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0); }

Error cannot_drop(int reason, std::string_view what) {
  return with_hint(errno_error(reason, fmt::format("drop capabilities: {}", what)),
                   "run as root or with CAP_SETPCAP, or without --drop-caps");
}

bool is_bounding_set_empty() {
  for (int capability = 0; bounding_bit(capability) >= 0; ++capability) {
    if (bounding_bit(capability) == 1) return false;
  }
  return true;
}

Result<void> empty_bounding_set() {
  for (int capability = 0; bounding_bit(capability) >= 0; ++capability) {
    if (bounding_bit(capability) == 1 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      return cannot_drop(errno, "bounding set");
  }
  return {};
}

Result<void> empty_own_sets() {
  // Before Linux 4.3 there was no ambient set to empty.
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
    return cannot_drop(errno, "ambient set");
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const CapabilitySets none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) return cannot_drop(errno, "capset");
  return {};
}

Result<void> check_no_capability() {
  for (const auto& word : TRY(read_capabilities())) {
    if ((word.effective | word.permitted | word.inheritable) != 0) return cannot_drop(EPERM, "some are left");
  }
  return {};
}

struct Identity {
  uid_t user = 0;
  gid_t group = 0;
  std::optional<std::string> name;  // whose further groups are those of /etc/group; unknown: none
};

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  // The last one means "leave as it is" to the kernel.
  bool is_number = failed == std::errc() && end == text.data() + text.size() && number != ~0U;
  return is_number ? std::optional(number) : std::nullopt;
}

Result<std::optional<Identity>> look_up(const std::string& user) {
  std::vector<char> buffer(std::size_t{1} << 16U);
  passwd entry{};
  passwd* found = nullptr;
  int failed = ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  auto number = number_in(user);
  if (found == nullptr && number)
    failed = ::getpwuid_r(*number, &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return std::optional(Identity{found->pw_uid, found->pw_gid, found->pw_name});
  // Without a passwd file no user is known, which these numbers say too.
  bool is_absent = failed == 0 || failed == ENOENT || failed == ESRCH || failed == EBADF || failed == EPERM;
  if (!is_absent) return errno_error(failed, "look up user " + user);
  return std::optional<Identity>();
}

Result<Identity> find_identity(const std::string& user) {
  std::size_t colon = user.find(':');
  if (colon != std::string::npos) {
    auto uid = number_in(std::string_view(user).substr(0, colon));
    auto gid = number_in(std::string_view(user).substr(colon + 1));
    if (uid && gid) return Identity{*uid, *gid, std::nullopt};
  }
  if (auto known = TRY(look_up(user))) return *known;
  return with_hint(make_error(ErrorCode::not_found, "switch to user {}: no such user", user),
                   "the name of a user, or UID:GID");
}

bool is_already(const Identity& wanted) {
  std::array<uid_t, 3> users{};
  std::array<gid_t, 3> groups{};
  ::getresuid(&users[0], &users[1], &users[2]);
  ::getresgid(&groups[0], &groups[1], &groups[2]);
  return users == std::array{wanted.user, wanted.user, wanted.user} &&
         groups == std::array{wanted.group, wanted.group, wanted.group};
}

Result<void> take_groups_of(const Identity& wanted) {
  int failed = wanted.name ? ::initgroups(wanted.name->c_str(), wanted.group) : ::setgroups(1, &wanted.group);
  return failed != 0 ? Result<void>(errno_error(errno, "set groups")) : Result<void>();
}

Error cannot_switch(const std::string& user, const Error& reason) {
  return with_hint(make_error(reason.code, "switch to user {}: {}", user, reason.message),
                   "run as root or with CAP_SETUID and CAP_SETGID, or without --switch-user");
}

Result<void> become(const Identity& wanted) {
  TRY(take_groups_of(wanted));
  if (::setresgid(wanted.group, wanted.group, wanted.group) != 0) return errno_error(errno, "set group");
  if (::setresuid(wanted.user, wanted.user, wanted.user) != 0) return errno_error(errno, "set user");
  if (!is_already(wanted)) return make_error(ErrorCode::failed, "the kernel left another identity");
  // A process that was root could become it again as long as something is left of it.
  if (wanted.user != 0 && ::setuid(0) == 0) return make_error(ErrorCode::failed, "root can be regained");
  return {};
}

}  // namespace

Result<void> drop_capabilities() {
  TRY(empty_bounding_set());
  TRY(empty_own_sets());
  return check_no_capability();
}

Result<void> switch_user(const std::string& user) {
  Identity wanted = TRY(find_identity(user));
  if (is_already(wanted)) return {};
  auto became = become(wanted);
  return became ? Result<void>() : cannot_switch(user, became.error());
}

Result<void> forbid_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "forbid new privileges");
  return {};
}

Result<void> check_can_limit(const PrivilegeLimits& limits) {
  if (limits.drops_capabilities && !is_bounding_set_empty() && !has_capability(CAP_SETPCAP))
    return cannot_drop(EPERM, "bounding set");
  if (limits.user.empty() || is_already(TRY(find_identity(limits.user)))) return {};
  if (has_capability(CAP_SETUID) && has_capability(CAP_SETGID)) return {};
  return cannot_switch(limits.user, errno_error(EPERM, "set user"));
}

// The bounding set needs a capability to be emptied, and so does the switch; a switch takes them away.
Result<void> limit_privileges(const PrivilegeLimits& limits) {
  if (limits.drops_capabilities) TRY(empty_bounding_set());
  if (!limits.user.empty()) TRY(switch_user(limits.user));
  return limits.drops_capabilities ? drop_capabilities() : Result<void>();
}

// AT_SECURE says it too, but also of a file with capabilities, which docs/permissions.md recommends: those go
// to the profiler alone, and never through exec.
Result<void> refuse_borrowed_identity() {
  bool is_own = ::getauxval(AT_UID) == ::getauxval(AT_EUID) && ::getauxval(AT_GID) == ::getauxval(AT_EGID);
  if (is_own) return {};
  return with_hint(make_error(ErrorCode::permission_denied, "refuses to run set-user-ID or set-group-ID"),
                   "chmod ug-s on its file; docs/permissions.md has the safe ways");
}

}  // namespace ddprof
