#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// pprof (perftools.profiles.Profile), uncompressed.
std::string encode_pprof(const Profile& profile);

// What a profile of others may make us hold: its bytes, and the profile made of them.
struct DecodeLimits {
  std::size_t inflated_bytes = std::size_t{256} << 20;
  std::size_t memory_bytes = std::size_t{1} << 30;
};

// Reads pprof bytes, gzipped or not. Every id and index is checked: the result can be used without further
// care.
Result<Profile> decode_pprof(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

}  // namespace ddprof
