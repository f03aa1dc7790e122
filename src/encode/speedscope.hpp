#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// JSON for https://www.speedscope.app: one entry per thread and value column, stacks root first. With several
// threads the first entries hold all of them together, which is what opens.
//
// A frame is a function: its line is where the function begins, because speedscope tells frames apart by line
// and would show one function in pieces. Where no source file is known the module's path stands for it.
//
// Fails for negative values (a diff), which the viewer refuses.
Result<std::string> encode_speedscope(const Profile& profile);

// Reads sampled and evented profiles of any exporter. Entries become threads, units columns; equal stacks of
// a thread are added up.
Result<Profile> decode_speedscope(std::string_view json, const DecodeLimits& limits = {});

}  // namespace ddprof
