#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// The value of an Authorization header: "Basic " and both, in base64 (RFC 7617).
std::string basic_auth(std::string_view user, std::string_view password);

}  // namespace ddprof
