#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_client.hpp"

namespace ddprof {

struct HttpPost {
  std::string url;     // http:// or https://
  std::string socket;  // path of a Unix socket to connect to, in place of the host; empty: none
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // further ones: name and value
  std::span<const std::byte> body;
  bool wants_body = false;  // also of an answer that is good
};

struct HttpPostAnswer {
  unsigned status = 0;
  std::string retry_after;  // header of that name, as the server wrote it
  std::string location;     // of a redirection
  std::string body;  // the beginning of it, when it was wanted or the status is not 2xx: servers explain
                     // themselves
};

inline constexpr std::size_t kMaxAnswerBytes = 4096;

// Posts the body. An answer of any status is an answer, also one that ends before its body does, or that
// comes before all was sent; redirections are not followed. Blocks, but within the limits of the options.
// Fails as http_get() does.
Result<HttpPostAnswer> http_post(const HttpPost& post, const HttpOptions& options);

}  // namespace ddprof
