#include "export/peers.hpp"

#include <sys/utsname.h>
#include <unistd.h>
#include <chrono>

#include <random>
#include <utility>

#include "export/datadog_peer.hpp"
#include "export/local_agent.hpp"
#include "export/otlp_peer.hpp"
#include "export/pyroscope_peer.hpp"

namespace ddprof {

namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitectureTag = "amd64";
constexpr std::string_view kPlatformTag = "x86_64-unknown-linux-gnu";
#elif defined(__aarch64__)
constexpr std::string_view kArchitectureTag = "arm64";
constexpr std::string_view kPlatformTag = "aarch64-unknown-linux-gnu";
#endif

// RFC 9562, version 4.
std::string random_uuid() {
  std::random_device random;
  const std::uint32_t words[] = {random(), random(), random(), random()};
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", words[0], words[1] >> 16U,
                     words[1] & 0xfffU, (words[2] >> 16U & 0x3fffU) | 0x8000U, words[2] & 0xffffU, words[3]);
}

// Tags as the user gives them (DD_TAGS), key and value, each key once. Those without a value are left out.
std::vector<std::pair<std::string, std::string>> tag_pairs(std::string_view text) {
  DatadogTags tags;
  tags.add_all(text);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& tag : tags.list()) {
    const std::size_t colon = tag.find(':');
    if (colon != std::string::npos) pairs.emplace_back(tag.substr(0, colon), tag.substr(colon + 1));
  }
  return pairs;
}

// Whose profiles they are. `name` is the service when the user gave it none.
DatadogIdentity identity_of(const DestinationOptions& options, const std::string& name,
                            const ProcessIdentity& target) {
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

OtlpResource resource_of(const DestinationOptions& options, const std::string& name,
                         const ProcessIdentity& target) {
  DatadogIdentity identity = identity_of(options, name, target);
  OtlpResource resource{.service_name = std::move(identity.service),
                        .service_version = std::move(identity.version),
                        .service_instance_id = std::move(identity.runtime_id),
                        .environment = std::move(identity.environment),
                        .host_name = std::move(identity.host),
                        .container_id = target.container_id,
                        .attributes = tag_pairs(options.tags)};
  if (!options.global) resource.pid = target.pid;
  return resource;
}

using Notice = std::function<void(const std::string&)>;

Notice said_once(const Notice& say) {
  return [say, was_said = std::make_shared<bool>(false)](const std::string& text) {
    if (say && !std::exchange(*was_said, true)) say(text);
  };
}

// Where it lives, and what it was started with; empty for a host, and where no peer would be told.
ProcessIdentity identity_of_target(const DestinationOptions& options, Pid target) {
  if (options.global || !has_peers(options)) return {};
  // Once, before anything is sampled: a target that is busy with its exec may take longer than a sample may.
  ForeignMemory memory({.patience = std::chrono::seconds(1)});
  ProcessIdentity identity = read_process_identity(target, *read_confinement(target), memory);
  identity.pid = to_int(target);
  return identity;
}

// For each request to an agent that was found: why it is not sent, as long as a stranger listens there. Null
// where any listener will do.
std::function<std::optional<Error>()> found_agent_guard(const DestinationOptions& options) {
  if (!is_agent_found(options) || !has_privilege()) return nullptr;
  return [url = options.url]() -> std::optional<Error> {
    const auto stranger =
        url.starts_with("unix:") ? stranger_at_socket(kUsualAgentSocket) : stranger_at_port(kUsualAgentPort);
    if (!stranger) return std::nullopt;
    return with_hint(make_error(ErrorCode::permission_denied, "post to {}", stranger_text(url, *stranger)),
                     "start the agent, or name the listener: --url " + url);
  };
}

}  // namespace

std::optional<AgentAddress> chosen_agent(const DestinationOptions& options) {
  const bool has_host = options.is_given("host") && !options.host.empty();
  const bool is_named = !options.url.empty() || has_host || options.is_given("port") || options.agentless;
  if (!options.do_export || !is_named) return std::nullopt;
  auto place =
      options.agentless
          ? intake_address(options.url, options.site)
          : AgentAddress::parse(options.url, options.host.empty() ? "localhost" : options.host, options.port);
  return place ? std::optional(std::move(place).value()) : std::nullopt;
}

Peer agent_peer(const AgentAddress& agent, const DestinationOptions& options, const std::string& name,
                const ProcessIdentity& target, std::shared_ptr<HostShares> shares) {
  return datadog_peer({.agent = agent,
                       .api_key = options.agentless ? options.api_key : "",
                       .format = options.intake_format,
                       .identity = identity_of(options, name, target),
                       .target = target,
                       .has_service = options.is_given("service"),
                       .has_runtime_id = options.is_given("runtime-id"),
                       .shares = std::move(shares),
                       .new_runtime_id = random_uuid});
}

std::optional<std::string> chosen_collector(const DestinationOptions& options) {
  if (!options.do_export) return std::nullopt;
  if (!options.otlp_profiles_endpoint.empty()) return options.otlp_profiles_endpoint;
  if (options.otlp_endpoint.empty()) return std::nullopt;
  auto base = parse_base_url(options.otlp_endpoint);
  return base ? std::optional(*base + std::string(kOtlpPath)) : std::nullopt;
}

Peer collector_peer(const std::string& url, const DestinationOptions& options, const std::string& name,
                    const ProcessIdentity& target, bool tells_processes) {
  auto headers = parse_otlp_headers(options.otlp_headers);
  return otlp_peer(
      {.url = url,
       .resource = resource_of(options, name, target),
       .headers = headers ? std::move(headers).value() : HttpHeaders(),
       .certificate_file = options.otlp_certificate,
       .is_compressed = options.otlp_compression != "none",
       // Pyroscope, which takes OTLP too, refuses times: they are sent to whom they are wanted for.
       .has_times = options.is_given("timeline"),
       .tells_processes = tells_processes});
}

std::optional<std::string> chosen_pyroscope(const DestinationOptions& options) {
  if (!options.do_export || options.pyroscope_url.empty()) return std::nullopt;
  auto url = parse_base_url(options.pyroscope_url);
  return url ? std::optional(std::move(url).value()) : std::nullopt;
}

Peer pyroscope_peer_of(const std::string& url, const DestinationOptions& options, const std::string& name,
                       const ProcessIdentity& target, std::shared_ptr<HostShares> shares) {
  const DatadogIdentity identity = identity_of(options, name, target);
  PyroscopeLabels labels = {
      {"env", identity.environment}, {"version", identity.version}, {"host", identity.host}};
  for (auto& tag : tag_pairs(options.tags)) labels.push_back(std::move(tag));
  return pyroscope_peer({.url = url,
                         .application = identity.service,
                         .labels = std::move(labels),
                         .user = options.pyroscope_user,
                         .password = options.pyroscope_password,
                         .tenant = options.pyroscope_tenant,
                         .shares = std::move(shares)});
}

bool has_peers(const DestinationOptions& options) {
  return chosen_agent(options).has_value() || chosen_collector(options).has_value() ||
         chosen_pyroscope(options).has_value();
}

std::vector<Peer> chosen_peers(const DestinationOptions& given, const std::string& name, Pid target,
                               const std::function<void(const std::string&)>& say_notice) {
  DestinationOptions options = given;
  // All know the run by the same name.
  if (options.runtime_id.empty()) options.runtime_id = random_uuid();
  const ProcessIdentity who = identity_of_target(options, target);
  const bool is_split = options.global && options.split_services;
  const auto shares = [is_split, say = said_once(say_notice)](HostShares::Detail detail) {
    return is_split ? std::make_shared<HostShares>(detail, say) : nullptr;
  };
  std::vector<Peer> peers;
  if (const auto agent = chosen_agent(options)) {
    peers.push_back(agent_peer(*agent, options, name, who, shares(HostShares::Detail::process)));
    peers.back().guard = found_agent_guard(options);
  }
  if (const auto url = chosen_collector(options))
    peers.push_back(collector_peer(*url, options, name, who, is_split));
  if (const auto url = chosen_pyroscope(options))
    peers.push_back(pyroscope_peer_of(*url, options, name, who, shares(HostShares::Detail::container)));
  return peers;
}

}  // namespace ddprof
