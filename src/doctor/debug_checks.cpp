#include "doctor/debug_checks.hpp"

#include <span>
#include <vector>

#include "net/http_client.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What is behind the address does not matter: any answer is one.
Result<void> ask_server(const std::string& url, milliseconds patience) {
  const HttpOptions options{.connect_timeout = patience,
                            .first_byte_timeout = patience,
                            .progress_timeout = patience,
                            .total_timeout = patience,
                            .max_bytes = 0};
  auto answer = http_get(url, options, [](std::span<const std::byte>) -> Result<void> { return {}; });
  const bool has_answered = answer || answer.error().code == ErrorCode::exhausted;  // of more than 0 bytes
  return has_answered ? Result<void>() : std::move(answer).error();
}

}  // namespace

Finding check_debug_files(const Machine& machine) {
  constexpr std::string_view kFolder = "/usr/lib/debug/.build-id";
  Finding finding{.name = "debug-files"};
  if (machine.exists(kFolder)) {
    finding.fact = fmt::format("{} exists", kFolder);
    finding.meaning = "installed debug files give lines and inlined calls to stripped programs and libraries";
    return finding;
  }
  finding.state = CheckState::missing;
  finding.fact = fmt::format("no {}", kFolder);
  finding.meaning = "stripped files have the names that they kept, without lines and inlined calls";
  finding.cure = {"install debug packages (Debian: sudo apt install libc6-dbg, and *-dbgsym)",
                  "--volume /usr/lib/debug:/usr/lib/debug:ro", "a hostPath volume of /usr/lib/debug"};
  return finding;
}

Finding check_debuginfod(const std::optional<DebuginfodSettings>& settings, milliseconds patience) {
  Finding finding{.name = "debuginfod"};
  if (!settings) {
    finding.state = CheckState::missing;
    finding.fact = "DEBUGINFOD_URLS names no server";
    finding.meaning = "debug files that are not installed are not fetched";
    finding.cure = {"export DEBUGINFOD_URLS=https://debuginfod.debian.net (or your distribution's)",
                    "--env DEBUGINFOD_URLS=…", "env DEBUGINFOD_URLS"};
    return finding;
  }
  const auto deadline = steady_clock::now() + patience;
  std::size_t answered = 0;
  std::string problem;
  for (const std::string& url : settings->urls) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (auto asked = ask_server(url, std::max(left, milliseconds(1))); asked)
      ++answered;
    else
      problem = asked.error().message;
  }
  finding.fact = fmt::format("{} of {} servers in DEBUGINFOD_URLS answer", answered, settings->urls.size());
  finding.meaning = fmt::format("missing debug files are fetched into {}", settings->cache_folder);
  if (answered == settings->urls.size()) return finding;
  finding.state = answered == 0 ? CheckState::missing : CheckState::limited;
  finding.meaning = problem;
  finding.cure.command = "name servers that this machine can reach, or unset DEBUGINFOD_URLS";
  return finding;
}

}  // namespace ddprof
