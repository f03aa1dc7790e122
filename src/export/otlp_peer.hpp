#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "encode/otlp.hpp"
#include "export/peer.hpp"

namespace ddprof {

// "key=value,key=value", percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS. An error quotes none of it: the
// values are secret.
Result<HttpHeaders> parse_otlp_headers(std::string_view text);

// What a collector that took a request did not like about it, by its answer (an
// ExportProfilesServiceResponse): profiles that it rejected, or a warning. Empty: nothing.
std::string otlp_objection(std::string_view answer);

// Where a collector takes profiles, below its address.
inline constexpr std::string_view kOtlpPath = "/v1development/profiles";

struct OtlpOptions {
  std::string url;  // of the requests, with the path
  OtlpResource resource;
  HttpHeaders headers;           // of each request; keys are among them
  std::string certificate_file;  // authorities to trust; empty: those of the system
  bool is_compressed = true;
  bool has_times = true;         // of samples, where the profile has them
  bool tells_processes = false;  // with several processes: what each says of itself
};

// An OpenTelemetry collector, or another server that takes OTLP profiles over HTTP, in the numbering of
// opentelemetry-proto 1.10 and later.
Peer otlp_peer(const OtlpOptions& options);

}  // namespace ddprof
