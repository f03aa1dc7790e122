#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "cli/options.hpp"
#include "export/datadog_body.hpp"

namespace ddprof {

// A new name for a run: a random UUID.
std::string random_uuid();

// Whose profiles they are. `name` is the service when nobody gave it one.
DatadogIdentity identity_of(const Options& options, const std::string& name, Pid target);

// The user's tags, key and value; those without a value are left out.
std::vector<std::pair<std::string, std::string>> tag_pairs(const Options& options);

}  // namespace ddprof
