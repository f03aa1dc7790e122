#pragma once

#include <string_view>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// The CPU profiles of gperftools: words of 4 or 8 bytes in either byte order, then the text of the process's
// maps. (gperftools, docs/cpuprofile-fileformat.)
[[nodiscard]] bool is_gperftools_cpu(std::string_view bytes);
Result<Profile> decode_gperftools_cpu(std::string_view bytes, const DecodeLimits& limits = {});

}  // namespace ddprof
