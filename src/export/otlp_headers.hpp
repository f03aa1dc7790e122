#pragma once

#include <string_view>

#include "base/result.hpp"
#include "export/peer.hpp"

namespace ddprof {

// "key=value,key=value", percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS. An error quotes none of it: the
// values are secret.
Result<HttpHeaders> parse_otlp_headers(std::string_view text);

}  // namespace ddprof
