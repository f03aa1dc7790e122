#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "export/peer.hpp"
#include "net/http_post.hpp"

namespace ddprof {

// What a peer's answer to a parcel means.
struct Verdict {
  enum class Kind : std::uint8_t {
    taken,
    later,    // the same parcel may be taken in a moment
    closed,   // nothing is taken until somebody mends something: a key, an address, a proxy
    refused,  // never this parcel; perhaps the next one
  };
  Kind kind = Kind::taken;
  unsigned status = 0;                              // 0: no answer
  std::optional<Error> error;                       // but for `taken`; it has a cure
  std::optional<std::chrono::seconds> retry_after;  // not before
  std::optional<Error> objection;                   // of a peer that took it all the same
};

// `now`: Unix time, for peers that name a date.
Verdict judge(const Result<HttpPostAnswer>& answer, const Peer& peer, Nanoseconds now = unix_now());

}  // namespace ddprof
