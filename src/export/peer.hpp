#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "export/destination.hpp"

namespace ddprof {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A batch, or a share of it, in the form that a peer takes. Nothing in it is secret: it may wait on a disk,
// and be sent by a later run.
struct UploadRequest {
  std::uint64_t sequence = 0;
  Nanoseconds start{}, end{};  // Unix time
  std::string query;           // goes behind the peer's URL and a question mark; empty: none
  std::string content_type;
  HttpHeaders headers;  // of this request: how the body is compressed, whose it is
  std::string body;
};

// Who takes profiles over HTTP: an agent, an intake, a collector.
struct Peer {
  std::string place;    // how messages name it; no secrets
  std::string url;      // of each request
  std::string socket;   // path of a Unix socket to connect to, in place of the URL's host; empty: none
  HttpHeaders headers;  // of each request; keys are among them
  std::string certificate_file;  // authorities to trust; empty: those of the system
  bool uses_proxy = false;       // that the environment names

  // In the order in which they are sent. One without a body: there is nothing in the batch that this peer
  // wants to know. An error: this one could not be made, others may be.
  std::function<std::vector<Result<UploadRequest>>(const Batch&)> pack;
  // Whether what was answered with this status may be taken when it is sent again in a moment.
  bool (*may_pass)(unsigned status) = nullptr;
  // What to do about a status, or, for 0, about a peer that cannot be reached.
  std::string (*hint)(unsigned status) = nullptr;
  // What a peer that took a request did not like about it, by its answer; empty: nothing. May be missing.
  std::string (*objection)(std::string_view answer) = nullptr;
  // Why no request may be sent now; asked before each. May be missing.
  std::function<std::optional<Error>()> guard = {};
};

}  // namespace ddprof
