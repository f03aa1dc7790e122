#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// The address of a server, to which a path is added: http(s)://host:port, perhaps with a path, without a
// slash at its end. A query would end up in the middle and is refused.
Result<std::string> parse_base_url(std::string_view text);

// An address as messages and folders may name it: what follows the question mark can be a secret.
std::string without_query(std::string_view url);

}  // namespace ddprof
