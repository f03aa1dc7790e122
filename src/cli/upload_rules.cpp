#include "cli/option_rules.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/output_file.hpp"
#include "cli/option_table.hpp"
#include "export/otlp_peer.hpp"
#include "export/peers.hpp"
#include "runtime/call_apart.hpp"

namespace ddprof {

namespace {

// A setting that was typed must be right: `trouble` becomes an error. One that a whole cluster has in
// its environment may be meant for others: it is told and left alone. `name` is the option's, `slot` its
// value.
Result<void> refuse_setting(Options& options, std::string_view name, std::string Options::*slot,
                            const Error& trouble, std::string_view hint) {
  const Origin& origin = origin_of(options, name);
  if (origin.kind == Origin::Kind::command_line)
    return Error{ErrorCode::invalid_argument, fmt::format("--{}: {}", name, trouble.message),
                 std::string(hint)};
  options.notices.push_back(fmt::format("{} is left alone: {}", origin.detail, trouble.message));
  (options.*slot).clear();
  return {};
}

constexpr std::size_t kShortestKey = 32;
constexpr const char* kKeyHint = "DD_API_KEY=KEY, or leave out --agentless and send through an agent";

// Never shows the key.
Result<void> check_key(const std::string& key) {
  if (key.empty())
    return with_hint(make_error(ErrorCode::invalid_argument, "--agentless: needs an API key"), kKeyHint);
  if (key.size() < kShortestKey)
    return with_hint(make_error(ErrorCode::invalid_argument,
                                "--agentless: an API key of {} characters; those of Datadog have {}",
                                key.size(), kShortestKey),
                     kKeyHint);
  const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (is_plain) return {};
  return with_hint(
      make_error(ErrorCode::invalid_argument, "--agentless: the API key has characters that no key has"),
      kKeyHint);
}

Result<void> check_intake_settings(const Options& options) {
  TRY(check_key(options.api_key));
  auto address = intake_address(options.url, options.site);
  if (address) return {};
  return with_hint(make_error(ErrorCode::invalid_argument, "--agentless: {}", address.error().message),
                   options.url.empty() ? "--site datadoghq.eu, DD_SITE" : "--url https://…, or --site alone");
}

constexpr std::string_view kEndpointHint = "http(s)://host:4318";
constexpr std::string_view kSpokenProtocol = "http/protobuf";

Result<void> check_endpoints(Options& options) {
  auto base = parse_base_url(options.otlp_endpoint);
  if (!options.otlp_endpoint.empty() && !base)
    TRY(refuse_setting(options, "otlp-endpoint", &Options::otlp_endpoint, base.error(), kEndpointHint));
  // Only the host matters: it is used as it is.
  auto whole = parse_base_url(without_query(options.otlp_profiles_endpoint));
  if (!options.otlp_profiles_endpoint.empty() && !whole)
    TRY(refuse_setting(options, "otlp-profiles-endpoint", &Options::otlp_profiles_endpoint, whole.error(),
                       kEndpointHint));
  return {};
}

Result<void> check_otlp_headers(Options& options) {
  auto headers = parse_otlp_headers(options.otlp_headers);
  if (headers) return {};
  return refuse_setting(options, "otlp-headers", &Options::otlp_headers, headers.error(),
                        "key=value,key=value");
}

// An address that came together with another protocol is no address for us.
void check_protocol(Options& options) {
  if (options.otlp_protocol.empty() || options.otlp_protocol == kSpokenProtocol) return;
  if (!chosen_collector(options)) return;
  std::string consequence;
  for (const auto& [name, slot] : {std::pair("otlp-endpoint", &Options::otlp_endpoint),
                                   std::pair("otlp-profiles-endpoint", &Options::otlp_profiles_endpoint)}) {
    const Origin& origin = origin_of(options, name);
    if (origin.kind == Origin::Kind::command_line || (options.*slot).empty()) continue;
    consequence = ": no profiles are sent to " + origin.detail;
    (options.*slot).clear();
  }
  options.notices.push_back(fmt::format("OTLP over {} is not spoken, only {}{}",
                                        options.otlp_protocol.substr(0, 40), kSpokenProtocol, consequence));
}

void check_compression(Options& options) {
  const std::string& word = options.otlp_compression;
  if (word.empty() || word == "gzip" || word == "none" || !chosen_collector(options)) return;
  options.notices.push_back(fmt::format(
      "OTLP is compressed by gzip, or not (none), but not by {}: gzip it is", word.substr(0, 40)));
}

bool may_look_for_an_agent(const Options& options) {
  const bool is_continuous = options.command == Command::wrap || options.command == Command::attach ||
                             options.command == Command::global;
  return is_continuous && options.enable && options.do_export && options.find_agent &&
         options.output.empty() && !has_peers(options);
}

}  // namespace

Result<void> check_agent_url(Options& options) {
  if (options.url.empty() || options.agentless) return {};
  auto agent = AgentAddress::parse(options.url, {}, 0);
  if (agent) return {};
  return refuse_setting(options, "url", &Options::url, agent.error(),
                        "host:port, http(s)://host:port, unix:///path or /path");
}

Result<void> check_intake(Options& options) {
  if (!options.agentless) return {};
  std::string agent;
  if (origin_of(options, "url").kind == Origin::Kind::environment) agent = std::exchange(options.url, {});
  auto checked = check_intake_settings(options);
  const Origin& origin = origin_of(options, "agentless");
  if (checked || origin.kind == Origin::Kind::command_line) return checked;
  options.notices.push_back(fmt::format("{} is left alone: {}; try: {}", origin.detail,
                                        checked.error().message, checked.error().hint));
  options.agentless = false;
  if (!agent.empty()) options.url = std::move(agent);
  return {};
}

Result<void> check_otlp(Options& options) {
  TRY(check_endpoints(options));
  TRY(check_otlp_headers(options));
  check_protocol(options);
  check_compression(options);
  return {};
}

Result<void> check_pyroscope(Options& options) {
  if (options.pyroscope_url.empty()) return {};
  auto url = parse_base_url(options.pyroscope_url);
  if (url) return {};
  return refuse_setting(options, "pyroscope-url", &Options::pyroscope_url, url.error(),
                        "http(s)://host:4040");
}

void choose_timeline(Options& options) {
  const std::size_t option = *find_option("timeline");
  if (options.origins.size() <= option || options.origins[option].kind != Origin::Kind::default_value) return;
  options.timeline = chosen_agent(options).has_value();
  options.origins[option].detail =
      options.timeline ? "uploads to Datadog have it" : "off but for uploads to Datadog";
}

void find_agent(Options& options, const AgentProbe& probe) {
  if (!may_look_for_an_agent(options)) return;
  std::optional<uid_t> stranger;
  std::string url;
  if (probe.has_socket(kUsualAgentSocket)) {
    url = fmt::format("unix://{}", kUsualAgentSocket);
    if (probe.stranger_at_socket) stranger = probe.stranger_at_socket(kUsualAgentSocket);
  } else if (probe.has_listener(kUsualAgentPort)) {
    url = fmt::format("http://localhost:{}", kUsualAgentPort);
    if (probe.stranger_at_port) stranger = probe.stranger_at_port(kUsualAgentPort);
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

Result<void> settle_output(Options& options) {
  constexpr std::chrono::milliseconds kPatience(1500);  // a program may wait for it
  if (options.output.empty() || options.output.ends_with('/')) return {};
  const auto is_folder = ask_file_system(kPatience, [&]() -> Result<void> {
    std::error_code unknown;  // in a folder that we may not enter: who writes there will say so
    if (std::filesystem::is_directory(options.output, unknown)) return {};
    return make_error(ErrorCode::not_found, "{} is no folder", options.output);
  });
  if (!is_folder) return does_not_answer("open " + options.output);
  if (is_folder->ok()) options.output += '/';
  return {};
}

}  // namespace ddprof
