#include "cli/found_agent.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/unique_fd.hpp"
#include "cli/option_table.hpp"
#include "cli/upload_peers.hpp"
#include "export/agent_owner.hpp"

namespace ddprof {

namespace {

constexpr const char* kUsualSocket = "/var/run/datadog/apm.socket";
constexpr std::uint16_t kUsualPort = 8126;

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

bool may_look_for_an_agent(const Options& options) {
  const bool is_continuous = options.command == Command::wrap || options.command == Command::attach ||
                             options.command == Command::global;
  return is_continuous && options.enable && options.do_export && options.find_agent &&
         options.output.empty() && !has_peers(options);
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

void find_agent(Options& options, const AgentProbe& probe) {
  if (!may_look_for_an_agent(options)) return;
  std::optional<uid_t> stranger;
  std::string url;
  if (probe.has_socket(kUsualSocket)) {
    url = fmt::format("unix://{}", kUsualSocket);
    if (probe.stranger_at_socket) stranger = probe.stranger_at_socket(kUsualSocket);
  } else if (probe.has_listener(kUsualPort)) {
    url = fmt::format("http://localhost:{}", kUsualPort);
    if (probe.stranger_at_port) stranger = probe.stranger_at_port(kUsualPort);
  } else {
    return;
  }
  if (stranger) {
    options.warnings.push_back(fmt::format("{}; no profile is sent to it, unless it is named: --url {}",
                                           stranger_text(url, *stranger), url));
    return;
  }
  options.url = url;
  options.origins[*find_option("url")].detail = "an agent is there";
}

std::function<std::optional<Error>()> found_agent_guard(const Options& options) {
  if (!is_agent_found(options) || !has_privilege()) return nullptr;
  return [url = options.url]() -> std::optional<Error> {
    const auto stranger =
        url.starts_with("unix:") ? stranger_at_socket(kUsualSocket) : stranger_at_port(kUsualPort);
    if (!stranger) return std::nullopt;
    return with_hint(make_error(ErrorCode::permission_denied, "post to {}", stranger_text(url, *stranger)),
                     "start the agent, or name the listener: --url " + url);
  };
}

bool is_agent_found(const Options& options) {
  return !options.url.empty() && origin_of(options, "url").kind == Origin::Kind::default_value;
}

}  // namespace ddprof
