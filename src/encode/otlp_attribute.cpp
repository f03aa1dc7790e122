#include "encode/otlp_attribute.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "encode/firefox_categories.hpp"
#include "profile/hash.hpp"
#include "profile/labels.hpp"

namespace ddprof {

namespace {

constexpr auto kLabelNames = std::to_array<OtlpLabelName>({
    {kThreadIdLabel, "thread.id", false},
    {kThreadNameLabel, "thread.name", false},
    {kProcessIdLabel, "process.pid", true},
    {kProcessNameLabel, "process.executable.name", true},
    {kNamespacePidLabel, "process.vpid", true},
    {kContainerIdLabel, "container.id", true},
    {kCgroupLabel, "process.linux.cgroup", true},
    {kServiceLabel, "service.name", true},
    {kLocalRootSpanIdLabel, "process.context.label.datadog.local_root_span_id", false},
    {kTraceEndpointLabel, "process.context.label.trace.endpoint", false},
});

constexpr auto kUnits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"bytes", "By"},
    {"nanoseconds", "ns"},
    {"microseconds", "us"},
    {"milliseconds", "ms"},
    {"seconds", "s"},
    {"count", "1"},
});

std::uint64_t hash_of_value(std::string_view text) { return std::hash<std::string_view>{}(text); }
std::uint64_t hash_of_value(std::int64_t number) { return static_cast<std::uint64_t>(number); }
std::uint64_t hash_of_value(bool is_true) { return is_true ? 1 : 0; }

template <typename Part>
std::uint64_t hash_of_value(const std::vector<Part>& parts) {
  std::uint64_t hash = parts.size();
  for (const Part& part : parts) hash = hash_mix(hash, hash_of_value(part));
  return hash;
}

}  // namespace

std::uint64_t hash_of(const OtlpAttribute& attribute) {
  const std::uint64_t value =
      std::visit([](const auto& held) { return hash_of_value(held); }, attribute.value);
  const std::uint64_t kind = hash_mix(attribute.value.index(), value);
  return hash_mix(hash_mix(kind, hash_of_value(attribute.key)), hash_of_value(attribute.unit));
}

OtlpLabelName otlp_label_name(std::string_view label) {
  for (const OtlpLabelName& known : kLabelNames) {
    if (known.label == label) return known;
  }
  return {label, label, false};
}

std::string_view otlp_unit(std::string_view unit) {
  for (const auto& [ours, theirs] : kUnits) {
    if (ours == unit) return theirs;
  }
  return unit;
}

std::string_view otlp_frame_type(std::string_view path) {
  switch (firefox_category(path, {}, false)) {
    case FirefoxCategory::kernel:
      return "kernel";
    case FirefoxCategory::user:
      return path.empty() ? "" : "native";
    default:
      return "";  // a compiler's code: of which language is not told
  }
}

std::string_view otlp_build_id_key(std::string_view build_id) {
  const bool is_hex = std::all_of(build_id.begin(), build_id.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  });
  return is_hex ? "process.executable.build_id.gnu" : "process.executable.build_id.go";
}

}  // namespace ddprof
