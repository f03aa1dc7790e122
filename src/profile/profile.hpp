#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// The one internal model of a finished profile: run-time addresses, mappings, inline chains, value columns,
// labels. Encoders choose their own names, address form and aggregation from it; decoders produce it. Strings
// are indices into `strings`, where 0 is always "".

using StringIndex = std::uint32_t;

struct ValueType {
  StringIndex type = 0;  // "cpu", "samples", "page-faults"
  StringIndex unit = 0;  // "nanoseconds", "count"
};

struct ProfileMapping {
  Address start{};
  Address limit{};
  std::uint64_t file_offset = 0;
  StringIndex path = 0;
  StringIndex build_id = 0;  // lowercase hex
  bool has_functions = false, has_filenames = false, has_lines = false, has_inlines = false;
};

struct ProfileFunction {
  StringIndex name = 0;         // readable
  StringIndex system_name = 0;  // as the linker knows it
  StringIndex file = 0;
  std::int64_t start_line = 0;
};

struct ProfileLine {
  std::uint32_t function = 0;  // index into functions
  std::int64_t line = 0;
  std::int64_t column = 0;  // 0: unknown
};

inline constexpr std::uint32_t kNoMapping = 0xffffffff;

struct ProfileLocation {
  std::uint32_t mapping = kNoMapping;  // index into mappings
  Address address{};                   // run-time address, inside of the mapping; callers point into the call
  std::vector<ProfileLine> lines;      // innermost inlined call first; empty when nothing is known
};

struct ProfileLabel {
  StringIndex key = 0;
  StringIndex text = 0;  // 0: a number
  std::int64_t number = 0;
  StringIndex unit = 0;
};

struct ProfileSample {
  std::vector<std::uint32_t> locations;  // leaf first, indices into locations
  std::vector<std::int64_t> values;      // one per value type
  std::vector<ProfileLabel> labels;
  // On a timeline, see profile/timeline.hpp.
  std::vector<std::int64_t> times;  // of the events that have one of their own: Unix time, nanoseconds
  std::uint32_t events = 0;         // how many the values are of; at least as many as there are times
  std::uint32_t process = 0;        // whose it is: a position in Batch::processes; 0: of no known process
};

struct Profile {
  std::vector<ValueType> value_types;
  ValueType period_type;
  std::int64_t period = 0;
  std::int64_t time_ns = 0;  // Unix time of the start
  std::int64_t duration_ns = 0;
  StringIndex default_value_type = 0;
  std::vector<ProfileMapping> mappings;
  std::vector<ProfileLocation> locations;
  std::vector<ProfileFunction> functions;
  std::vector<ProfileSample> samples;
  ProfileLabel time_label;  // key and unit of what becomes of `times` where each event is a sample
  std::vector<StringIndex> comments;
  std::vector<StringIndex> context_keys;  // of labels that the profiled threads made up themselves
  StringIndex doc_url = 0;                // an absolute address that explains this kind of profile
  std::vector<std::string> strings{std::string()};

  [[nodiscard]] std::string_view text(StringIndex index) const { return strings[index]; }
};

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
