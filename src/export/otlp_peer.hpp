#pragma once

#include <string>

#include "encode/otlp.hpp"
#include "export/peer.hpp"

namespace ddprof {

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

// An OpenTelemetry collector, or whoever else takes OTLP profiles over HTTP, in the numbering of
// opentelemetry-proto 1.10 and later.
Peer otlp_peer(const OtlpOptions& options);

}  // namespace ddprof
