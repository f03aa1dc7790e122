#include "cli/agent_choice.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <random>
#include <string_view>
#include <utility>

#include "cli/option_table.hpp"
#include "export/addresses.hpp"
#include "export/datadog_peer.hpp"

namespace ddprof {

namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitectureTag = "amd64";
constexpr std::string_view kPlatformTag = "x86_64-unknown-linux-gnu";
#elif defined(__aarch64__)
constexpr std::string_view kArchitectureTag = "arm64";
constexpr std::string_view kPlatformTag = "aarch64-unknown-linux-gnu";
#endif

}  // namespace

// RFC 9562, version 4.
std::string random_uuid() {
  std::random_device random;
  const std::uint32_t words[] = {random(), random(), random(), random()};
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", words[0], words[1] >> 16U,
                     words[1] & 0xfffU, (words[2] >> 16U & 0x3fffU) | 0x8000U, words[2] & 0xffffU, words[3]);
}

namespace {

bool was_named(const Options& options, std::string_view name) {
  return origin_of(options, name).kind != Origin::Kind::default_value;
}

}  // namespace

DatadogIdentity identity_of(const Options& options, const std::string& name, const ProcessIdentity& target) {
  utsname machine{};
  ::uname(&machine);
  return {.service = options.service.empty() ? name : options.service,
          .environment = options.environment,
          .version = options.service_version,
          .runtime_id = options.runtime_id.empty() ? random_uuid() : options.runtime_id,
          .process_id = target.pid,
          .host = machine.nodename,
          .architecture = std::string(kArchitectureTag),
          .platform = std::string(kPlatformTag),
          .cores = ::sysconf(_SC_NPROCESSORS_CONF),
          .online_cores = ::sysconf(_SC_NPROCESSORS_ONLN),
          .includes_kernel = options.samples_kernel,
          .has_remote_symbols = options.remote_symbolization,
          .kernel_release = machine.release,
          .kernel_version = machine.version,
          .tags = options.tags};
}

std::optional<AgentAddress> chosen_agent(const Options& options) {
  const bool has_host = was_named(options, "host") && !options.host.empty();
  const bool is_named = !options.url.empty() || has_host || was_named(options, "port") || options.agentless;
  if (!options.do_export || !is_named) return std::nullopt;
  auto place =
      options.agentless
          ? intake_address(options.url, options.site)
          : AgentAddress::parse(options.url, options.host.empty() ? "localhost" : options.host, options.port);
  return place ? std::optional(std::move(place).value()) : std::nullopt;
}

Peer agent_peer(const AgentAddress& agent, const Options& options, const std::string& name,
                const ProcessIdentity& target, std::shared_ptr<HostShares> shares) {
  return datadog_peer({.agent = agent,
                       .api_key = options.agentless ? options.api_key : "",
                       .format = options.intake_format,
                       .identity = identity_of(options, name, target),
                       .target = target,
                       .has_service = was_named(options, "service"),
                       .has_runtime_id = was_named(options, "runtime-id"),
                       .shares = std::move(shares),
                       .new_runtime_id = random_uuid});
}

}  // namespace ddprof
