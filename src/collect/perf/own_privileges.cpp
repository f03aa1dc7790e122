#include "collect/perf/own_privileges.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace ddprof {

namespace {

constexpr int kSeccompFilter = 2;  // SECCOMP_MODE_FILTER
// PROC_USER_INIT_INO, the same on every kernel.
constexpr std::string_view kFirstUserNamespace = "user:[4026531837]";

std::uint64_t number_after(std::string_view line, std::size_t start, int base) {
  std::uint64_t value = 0;
  start = line.find_first_not_of(" \t", start);
  if (start != std::string_view::npos)
    std::from_chars(line.data() + start, line.data() + line.size(), value, base);
  return value;
}

void read_status(const std::string& path, OwnPrivileges& privileges) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = std::string_view(line).substr(0, colon);
    if (key == "CapEff") privileges.capabilities = number_after(line, colon + 1, 16);
    if (key == "CapBnd") privileges.bounding = number_after(line, colon + 1, 16);
    if (key == "NoNewPrivs") privileges.has_no_new_privileges = number_after(line, colon + 1, 10) == 1;
    if (key == "Seccomp")
      privileges.is_seccomp_filtered = number_after(line, colon + 1, 10) == kSeccompFilter;
  }
}

bool is_first_user_namespace(const std::string& path) {
  std::array<char, 64> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  // Kernels without user namespaces have no such link.
  return size < 0 || std::string_view(target.data(), static_cast<std::size_t>(size)) == kFirstUserNamespace;
}

}  // namespace

OwnPrivileges own_privileges(const std::string& root) {
  OwnPrivileges privileges;
  std::ifstream file(root + "/proc/sys/kernel/perf_event_paranoid");
  if (int level = 0; file >> level) privileges.paranoid = level;
  read_status(root + "/proc/self/status", privileges);
  privileges.is_root = ::geteuid() == 0;
  std::error_code unreadable;
  const auto executable = std::filesystem::read_symlink(root + "/proc/self/exe", unreadable);
  if (!unreadable) privileges.executable = executable.string();
  privileges.is_in_first_user_namespace = is_first_user_namespace(root + "/proc/self/ns/user");
  return privileges;
}

}  // namespace ddprof
