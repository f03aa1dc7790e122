#pragma once

#include <string_view>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// Heap profiles as text: those of gperftools ("heap profile: 1: 64 [2: 128] @ heap_v2/524288") and of
// jemalloc ("heap_v2/524288", with a line per thread). Both sample allocations at random, once in so many
// bytes; what is returned are estimates of all of them.
[[nodiscard]] bool is_heap_text(std::string_view text);
Result<Profile> decode_heap_text(std::string_view text, const DecodeLimits& limits = {});

}  // namespace ddprof
