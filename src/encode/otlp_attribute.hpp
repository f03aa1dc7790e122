#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace ddprof {

// An attribute of OTLP. Texts belong to the profile, the resource or the program: they outlive the encoder.
using OtlpTexts = std::vector<std::string_view>;
using OtlpNumbers = std::vector<std::int64_t>;
using OtlpValue = std::variant<std::string_view, std::int64_t, bool, OtlpTexts, OtlpNumbers>;

struct OtlpAttribute {
  std::string_view key;
  OtlpValue value;
  std::string_view unit;

  bool operator==(const OtlpAttribute&) const = default;
};

std::uint64_t hash_of(const OtlpAttribute& attribute);

// The attribute that a label of ours becomes: OpenTelemetry has its own names for what it knows.
struct OtlpLabelName {
  std::string_view label;
  std::string_view attribute;
  bool is_of_process;  // it describes the whole process, so it belongs to the resource
};
OtlpLabelName otlp_label_name(std::string_view label);

// "bytes" -> "By": units of attributes are those of UCUM. What it has no short name for stays as it is.
std::string_view otlp_unit(std::string_view unit);

// What kind of code a file with this path holds, for profile.frame.type; empty when that is not known.
std::string_view otlp_frame_type(std::string_view path);

// The attribute that holds a build id: which of them depends on who made the id.
std::string_view otlp_build_id_key(std::string_view build_id);

}  // namespace ddprof
