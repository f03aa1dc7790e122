#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// pprof (perftools.profiles.Profile), uncompressed.
std::string encode_pprof(const Profile& profile);

// Reads pprof bytes, gzipped or not. Every id and index is checked: the result can be used without further
// care.
Result<Profile> decode_pprof(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

}  // namespace ddprof
