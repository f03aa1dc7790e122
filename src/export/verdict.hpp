#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

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
  std::optional<Error> error;                       // but for `taken`; it has a cure
  std::optional<std::chrono::seconds> retry_after;  // not before
  std::optional<Error> objection;                   // of a peer that took it all the same
};

Verdict judge(const Result<HttpPostAnswer>& answer, const Peer& peer);

}  // namespace ddprof
