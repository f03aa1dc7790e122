#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "net/http_post.hpp"

namespace ddprof {

// What an agent's answer to a profile means.
struct DatadogVerdict {
  std::optional<Error> refusal;                     // none: it was taken
  bool may_pass = false;                            // the same profile may be taken later
  std::optional<std::chrono::seconds> retry_after;  // not before
};

// `place` names the agent in the error, which has a cure.
DatadogVerdict judge(const Result<HttpPostAnswer>& answer, const std::string& place);

}  // namespace ddprof
