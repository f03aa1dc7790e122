#include "cli/otlp_choice.hpp"

#include <utility>

#include "cli/agent_choice.hpp"
#include "cli/foreign_setting.hpp"
#include "cli/option_table.hpp"
#include "cli/tag_pairs.hpp"
#include "export/addresses.hpp"
#include "export/otlp_headers.hpp"
#include "export/otlp_peer.hpp"

namespace ddprof {

namespace {

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

OtlpResource resource_of(const Options& options, const std::string& name, const ProcessIdentity& target) {
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

}  // namespace

Result<void> check_otlp(Options& options) {
  TRY(check_endpoints(options));
  TRY(check_otlp_headers(options));
  check_protocol(options);
  check_compression(options);
  return {};
}

std::optional<std::string> chosen_collector(const Options& options) {
  if (!options.do_export) return std::nullopt;
  if (!options.otlp_profiles_endpoint.empty()) return options.otlp_profiles_endpoint;
  if (options.otlp_endpoint.empty()) return std::nullopt;
  auto base = parse_base_url(options.otlp_endpoint);
  return base ? std::optional(*base + std::string(kOtlpPath)) : std::nullopt;
}

Peer collector_peer(const std::string& url, const Options& options, const std::string& name,
                    const ProcessIdentity& target, bool tells_processes) {
  auto headers = parse_otlp_headers(options.otlp_headers);
  return otlp_peer(
      {.url = url,
       .resource = resource_of(options, name, target),
       .headers = headers ? std::move(headers).value() : HttpHeaders(),
       .certificate_file = options.otlp_certificate,
       .is_compressed = options.otlp_compression != "none",
       // Pyroscope, which takes OTLP too, refuses times: they are sent to whom they are wanted for.
       .has_times = origin_of(options, "timeline").kind != Origin::Kind::default_value,
       .tells_processes = tells_processes});
}

}  // namespace ddprof
