#pragma once

#include <string_view>

namespace ddprof {

// Keys of sample labels. Backends know them by these exact spellings; the spaces are theirs.
inline constexpr std::string_view kThreadIdLabel = "thread id";
inline constexpr std::string_view kThreadNameLabel = "thread name";
inline constexpr std::string_view kProcessIdLabel = "pid";
inline constexpr std::string_view kProcessNameLabel = "process name";
inline constexpr std::string_view kEndTimestampLabel = "end_timestamp_ns";  // Unix time, a number
inline constexpr std::string_view kNamespacePidLabel = "namespace pid";
inline constexpr std::string_view kContainerIdLabel = "container_id";
inline constexpr std::string_view kCgroupLabel = "cgroup";
inline constexpr std::string_view kServiceLabel = "service";
inline constexpr std::string_view kTraceIdLabel = "trace id";  // 32 hexadecimal digits
inline constexpr std::string_view kSpanIdLabel = "span id";    // a number, as is the next
inline constexpr std::string_view kLocalRootSpanIdLabel = "local root span id";
inline constexpr std::string_view kTraceEndpointLabel = "trace endpoint";

}  // namespace ddprof
