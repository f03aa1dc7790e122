#include "doctor/agent_check.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.hpp"
#include "export/local_agent.hpp"
#include "net/http_client.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kIntake = "/profiling/v1/input";
constexpr std::size_t kMaxInfoBytes = 64U << 10U;

// Either it listens or it does not: a local socket answers at once.
Result<void> connect_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return make_error(ErrorCode::invalid_argument, "connect to {}: the path is too long", path);
  path.copy(address.sun_path, path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return errno_error(errno, "create a socket");
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd.get(), generic, sizeof address) != 0)
    return errno_error(errno, fmt::format("connect to {}", path));
  return {};
}

struct AgentInfo {
  unsigned status = 0;
  std::string body;
};

Result<AgentInfo> ask_for_info(const std::string& url, std::chrono::milliseconds patience) {
  AgentInfo info;
  const HttpOptions options{.connect_timeout = patience,
                            .first_byte_timeout = patience,
                            .progress_timeout = patience,
                            .total_timeout = patience,
                            .max_bytes = kMaxInfoBytes,
                            .max_redirects = 0};
  const HttpSink keep = [&](std::span<const std::byte> bytes) -> Result<void> {
    info.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  info.status = TRY(http_get(url + "/info", options, keep)).status;
  return info;
}

Finding unreachable(Finding finding, const Error& error) {
  finding.state = CheckState::missing;
  finding.fact += fmt::format(" does not answer ({})", error.message);
  finding.meaning = "profiles cannot be sent to it; files need no agent";
  finding.hint = {"start the agent, or name it: --url, DD_TRACE_AGENT_URL",
                  "--env DD_AGENT_HOST=… or --volume /var/run/datadog:/var/run/datadog",
                  "env DD_AGENT_HOST from status.hostIP, or a hostPath volume of /var/run/datadog"};
  return finding;
}

Finding with_info(Finding finding, const AgentInfo& info) {
  if (info.status == 200 && info.body.find(kIntake) != std::string::npos) {
    finding.meaning = "answers and takes profiles";
    return finding;
  }
  finding.state = CheckState::limited;
  finding.meaning = fmt::format("answers with status {}, and does not list {}", info.status, kIntake);
  finding.hint.command = "name a Datadog agent that takes profiles: --url, DD_TRACE_AGENT_URL";
  return finding;
}

}  // namespace

Finding check_agent(const Result<AgentAddress>& address, std::chrono::milliseconds patience) {
  Finding finding{.name = "agent"};
  if (!address) {
    finding.fact = "the agent";
    return unreachable(std::move(finding), address.error());
  }
  finding.fact = address->text();
  if (!address->socket.empty()) {
    auto connected = connect_socket(address->socket);
    if (!connected) return unreachable(std::move(finding), connected.error());
    finding.meaning = "listens for profiles";
    return finding;
  }
  auto info = ask_for_info(address->url, patience);
  return info ? with_info(std::move(finding), *info) : unreachable(std::move(finding), info.error());
}

Finding check_found_agent(const Result<AgentAddress>& address, std::optional<uid_t> stranger) {
  if (!address || !stranger) return check_agent(address);
  return {.name = "agent",
          .state = CheckState::missing,
          .fact = stranger_text(address->text(), *stranger),
          .meaning = "no profile is sent to it, unless it is named",
          .hint = {"start the agent, or name the listener: --url " + address->text(), "", ""}};
}

}  // namespace ddprof
