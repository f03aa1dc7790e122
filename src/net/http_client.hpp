#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/proxy.hpp"

namespace ddprof {

struct HttpOptions {
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);     // name, connection and TLS
  std::chrono::milliseconds first_byte_timeout = std::chrono::seconds(30);  // from the request to the headers
  // The body must bring `progress_bytes` in each such stretch, or its end: a server that trickles does not
  // count as one that answers.
  std::chrono::milliseconds progress_timeout = std::chrono::seconds(30);
  std::uint64_t progress_bytes = 1;
  std::chrono::milliseconds total_timeout = std::chrono::minutes(5);  // over all redirections
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  int max_redirects = 3;
  std::string user_agent = "ddprof/" DDPROF_VERSION;
  std::string certificate_file;  // authorities to trust; empty: those of the system
  ProxyVariables proxies;        // the variables that name proxies; nothing: no proxy is used
  std::stop_token stop;          // gives up at once
};

struct HttpAnswer {
  unsigned status = 0;
  std::uint64_t body_bytes = 0;  // that went to the sink
};

// Takes the body piece by piece. An error ends the transfer and becomes its result.
using HttpSink = std::function<Result<void>(std::span<const std::byte>)>;

// Gets `url`, over TLS when it says so, following redirections but never from https to http. An answer of any
// status is an answer; the sink only sees the body of a 200. Blocks, but within the limits. Fails with
// `failed` when the server does not answer as it should, with `exhausted` when the body is too large, with
// `corrupt` when the answer is no HTTP or ends too early, with `permission_denied` when the user must mend
// something first: a certificate, the address of a proxy.
Result<HttpAnswer> http_get(std::string_view url, const HttpOptions& options, const HttpSink& sink);

}  // namespace ddprof
