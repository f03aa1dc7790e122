#include "export/local_agent.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

constexpr const char* kAgentUser = "dd-agent";
constexpr std::string_view kListening = "0A";  // TCP_LISTEN

// As the kernel prints them on a little-endian machine: 127.0.0.1 and 0.0.0.0, then ::1, ::, and the first
// two mapped to IPv6.
constexpr auto kLoopback = std::to_array<std::string_view>(
    {"0100007F", "00000000", "00000000000000000000000001000000", "00000000000000000000000000000000",
     "0000000000000000FFFF00000100007F", "0000000000000000FFFF000000000000"});

std::optional<uid_t> agent_user() {
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(kAgentUser, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? std::optional(found->pw_uid) : std::nullopt;
}

bool is_stranger(uid_t owner) { return owner != 0 && owner != ::geteuid() && agent_user() != owner; }

std::string_view take_field(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(field.size());
  return field;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// proc(5): number, local address, remote address, state, queues, timer, retransmissions, user.
std::optional<uid_t> listener_in_line(std::string_view line, std::uint16_t port) {
  take_field(line);
  const std::string_view local = take_field(line);
  take_field(line);
  const std::string_view state = take_field(line);
  for (int skipped = 0; skipped < 3; ++skipped) take_field(line);
  const std::size_t colon = local.find(':');
  if (state != kListening || colon == std::string_view::npos) return std::nullopt;
  if (std::find(kLoopback.begin(), kLoopback.end(), local.substr(0, colon)) == kLoopback.end())
    return std::nullopt;
  if (number_in<std::uint16_t>(local.substr(colon + 1), 16) != port) return std::nullopt;
  return number_in<uid_t>(take_field(line), 10);
}

// Who listened at the other end of a Unix socket.
std::optional<uid_t> peer_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  path.copy(address.sun_path, path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!fd.is_open() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::nullopt;
  return peer.uid;
}

}  // namespace

bool has_privilege() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::geteuid() == 0) return true;
  return ::syscall(SYS_capget, &header, data.data()) == 0 && (data[0].effective | data[1].effective) != 0;
}

std::vector<uid_t> listeners_in(std::string_view table, std::uint16_t port) {
  std::vector<uid_t> owners;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    if (const auto owner = listener_in_line(line, port)) owners.push_back(*owner);
  }
  return owners;
}

std::optional<uid_t> stranger_at_port(std::uint16_t port) {
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string table = read_file(path).value_or("");
    for (const uid_t owner : listeners_in(table, port))
      if (is_stranger(owner)) return owner;
  }
  return std::nullopt;
}

std::optional<uid_t> stranger_at_socket(const std::string& path) {
  std::optional<uid_t> owner = peer_of(path);
  struct stat status {};
  if (!owner && ::stat(path.c_str(), &status) == 0) owner = status.st_uid;
  return owner && is_stranger(*owner) ? owner : std::nullopt;
}

std::string stranger_text(const std::string& place, uid_t stranger) {
  return fmt::format("{}: a process of user {} listens there, neither root's nor {}'s", place, stranger,
                     kAgentUser);
}

namespace {

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

bool answers(int family, const sockaddr* address, socklen_t size, std::chrono::milliseconds patience) {
  const UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return false;
  if (::connect(fd.get(), address, size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiter{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&waiter, 1, static_cast<int>(patience.count())) <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

bool listens_at_loopback(std::uint16_t port, std::chrono::milliseconds patience) {
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = htons(port);
  old.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 current{};
  current.sin6_family = AF_INET6;
  current.sin6_port = htons(port);
  current.sin6_addr = in6addr_loopback;
  return answers(AF_INET, reinterpret_cast<const sockaddr*>(&old), sizeof old, patience) ||
         answers(AF_INET6, reinterpret_cast<const sockaddr*>(&current), sizeof current, patience);
}

}  // namespace

AgentProbe agent_probe(std::chrono::milliseconds patience) {
  AgentProbe probe{.has_socket = is_socket, .has_listener = [patience](std::uint16_t port) {
                     return listens_at_loopback(port, patience);
                   }};
  if (has_privilege()) {
    probe.stranger_at_socket = stranger_at_socket;
    probe.stranger_at_port = stranger_at_port;
  }
  return probe;
}

bool is_agent_found(const DestinationOptions& options) {
  return !options.url.empty() && !options.is_given("url");
}

}  // namespace ddprof
