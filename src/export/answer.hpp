#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "export/peer.hpp"
#include "net/http_post.hpp"

namespace ddprof {

// What a header Retry-After says (RFC 9110, section 10.2.3): a number of seconds, or a date in the one form
// that may still be written ("Sun, 06 Nov 1994 08:49:37 GMT"). A date that has passed is 0 seconds from now.
// Nothing when it is neither.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, Nanoseconds unix_now);

// What a peer's answer to a request means.
struct Answer {
  enum class Kind : std::uint8_t {
    taken,
    later,    // the same request may be taken in a moment
    closed,   // nothing is taken until a key, an address or a proxy is corrected
    refused,  // never this request; perhaps the next one
  };
  Kind kind = Kind::taken;
  unsigned status = 0;                              // 0: no answer
  std::optional<Error> error;                       // but for `taken`; it has a hint
  std::optional<std::chrono::seconds> retry_after;  // not before
  std::optional<Error> objection;                   // of a peer that took it all the same
};

// `now`: Unix time, for peers that name a date.
Answer judge(const Result<HttpPostAnswer>& answer, const Peer& peer, Nanoseconds now = unix_now());

}  // namespace ddprof
