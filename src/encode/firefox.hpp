#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "encode/decode_limits.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// The version of the processed format that is written: the front-end upgrades older ones, and other native
// profilers write the same.
inline constexpr int kFirefoxVersion = 66;

// What "more info" in the viewer says about the file, and what we look for when we read it again.
inline constexpr std::string_view kFirefoxExporter = "ddprof ";
inline constexpr std::string_view kFirefoxWeights = "Weights";  // "cpu/nanoseconds"
inline constexpr std::string_view kFirefoxTimes = "Times";
inline constexpr std::string_view kFirefoxMeasured = "measured";
inline constexpr std::string_view kFirefoxComment = "Comment";

// JSON for https://profiler.firefox.com, in its processed format. It has one weight per sample: the default
// column. Samples without an end_timestamp_ns are laid out one behind the other, each as long as its value.
std::string encode_firefox(const Profile& profile);

// Reads what encode_firefox and other native profilers write: versions 60 to 70, whose threads share their
// tables.
Result<Profile> decode_firefox(std::string_view json, const DecodeLimits& limits = {});

}  // namespace ddprof
