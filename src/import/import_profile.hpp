#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "encode/pprof.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// Reads a profile of any format that we know, recognised by its content: pprof, the CPU and heap profiles of
// gperftools and jemalloc, folded stacks, speedscope and Firefox JSON; each also gzipped. What is recognised
// but cannot be read says what to do instead.
Result<Profile> import_profile(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

}  // namespace ddprof
