#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "export/agent_address.hpp"

namespace ddprof {

inline constexpr std::string_view kUsualSite = "datadoghq.com";

// Where profiles go without an agent: the intake of a site, "datadoghq.eu". `url` is used in its place when
// it is not empty; one without a scheme is a site, as in the original. Never without TLS: a key travels with
// them.
Result<AgentAddress> intake_address(const std::string& url, const std::string& site);

}  // namespace ddprof
