#pragma once

#include <string_view>

#include "base/result.hpp"
#include "encode/pprof.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// What encode_firefox and other native profilers write: versions 60 to 70, whose threads share their tables.
Result<Profile> decode_firefox(std::string_view json, const DecodeLimits& limits = {});

// Sampled and evented profiles of any exporter of speedscope's format. Entries become threads, units columns;
// equal stacks of a thread are added up.
Result<Profile> decode_speedscope(std::string_view json, const DecodeLimits& limits = {});

// "main;work 12" lines of any producer. All words before the count are frames, also one that names the
// process: the format does not say. A first frame such as "[worker tid=12]" (async-profiler) names the
// thread. Counts with fractions are multiplied by a power of ten, and a comment says so. Without a
// line that says what they are the column is "value", with no unit.
Result<Profile> decode_folded(std::string_view text, const DecodeLimits& limits = {});

// The CPU profiles of gperftools: words of 4 or 8 bytes in either byte order, then the text of the process's
// maps. (gperftools, docs/cpuprofile-fileformat.)
[[nodiscard]] bool is_gperftools_cpu(std::string_view bytes);
Result<Profile> decode_gperftools_cpu(std::string_view bytes, const DecodeLimits& limits = {});

// Heap profiles as text: those of gperftools ("heap profile: 1: 64 [2: 128] @ heap_v2/524288") and of
// jemalloc ("heap_v2/524288", with a line per thread). Both sample allocations at random, once in so many
// bytes; what is returned are estimates of all of them.
[[nodiscard]] bool is_heap_text(std::string_view text);
Result<Profile> decode_heap_text(std::string_view text, const DecodeLimits& limits = {});

}  // namespace ddprof
