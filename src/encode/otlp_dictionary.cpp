#include "encode/otlp_dictionary.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <utility>

#include "encode/firefox_categories.hpp"
#include "profile/dense_index.hpp"
#include "profile/profile.hpp"

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

namespace {

std::uint64_t hash_numbers(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t hash = numbers.size();
  for (std::uint64_t number : numbers) hash = hash_mix(hash, number);
  return hash;
}

std::uint64_t as_word(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

OtlpDictionary::OtlpDictionary(const Profile& profile)
    : profile_(profile),
      stacks_(profile.samples.size()),
      locations_(profile.locations.size()),
      functions_(profile.functions.size()),
      mappings_(profile.mappings.size()),
      mapping_attributes_(1),
      text_numbers_(profile.strings.size()) {
  text(std::string_view());  // gets 0
}

OtlpDictionary::Number OtlpDictionary::known_text(std::string_view text) const {
  return text_index_.find(std::hash<std::string_view>{}(text),
                          [&](std::uint32_t at) { return texts_[at] == text; });
}

OtlpDictionary::Number OtlpDictionary::text(std::string_view text) {
  const Number known = known_text(text);
  if (known != DenseIndex::kNotFound) return known;
  texts_.push_back(text);
  return text_index_.append(std::hash<std::string_view>{}(text));
}

OtlpDictionary::Number OtlpDictionary::text(StringIndex index) {
  Number& number = text_numbers_[index];
  if (number == 0) number = text(profile_.text(index));
  return number;
}

OtlpDictionary::Number OtlpDictionary::attribute(const OtlpAttribute& attribute) {
  const std::uint64_t hash = hash_of(attribute);
  const std::uint32_t known =
      attribute_index_.find(hash, [&](std::uint32_t at) { return attributes_[at] == attribute; });
  if (known != DenseIndex::kNotFound) return known + 1;
  text(attribute.key);
  text(attribute.unit);
  attributes_.push_back(attribute);
  return attribute_index_.append(hash) + 1;
}

OtlpDictionary::Number OtlpDictionary::stack(std::uint32_t sample) {
  const std::vector<std::uint32_t>& stack = profile_.samples[sample].locations;
  if (stack.empty()) return 0;
  const auto number = [&](std::size_t at) -> std::uint64_t {
    const Number known = locations_[stack[at]];
    return known != 0 ? known : location(stack[at]);
  };
  // Two at a time: this loop runs for every frame of the profile.
  std::uint64_t hash = stack.size();
  for (std::size_t at = 1; at < stack.size(); at += 2)
    hash = hash_mix(hash, number(at - 1) << 32U | number(at));
  if (stack.size() % 2 != 0) hash = hash_mix(hash, number(stack.size() - 1));
  return stacks_.add(sample, hash, [&](std::uint32_t other) {
    const std::vector<std::uint32_t>& known = profile_.samples[other].locations;
    return std::equal(
        stack.begin(), stack.end(), known.begin(), known.end(),
        [&](std::uint32_t left, std::uint32_t right) { return locations_[left] == locations_[right]; });
  });
}

OtlpDictionary::Number OtlpDictionary::location(std::uint32_t index) {
  const ProfileLocation& location = profile_.locations[index];
  const Number its_mapping = location.mapping == kNoMapping ? 0 : mapping(location.mapping);
  std::uint64_t hash = hash_numbers({its_mapping, location.address.value, location.lines.size()});
  for (const ProfileLine& line : location.lines)
    hash = hash_mix(hash_mix(hash, function(line.function)), as_word(line.line));
  return locations_.add(index, hash, [&](std::uint32_t other) {
    return is_same_location(location, profile_.locations[other]);
  });
}

bool OtlpDictionary::is_same_location(const ProfileLocation& left, const ProfileLocation& right) const {
  const auto mapping_of = [&](const ProfileLocation& location) {
    return location.mapping == kNoMapping ? 0 : mappings_[location.mapping];
  };
  return mapping_of(left) == mapping_of(right) && left.address == right.address &&
         std::equal(left.lines.begin(), left.lines.end(), right.lines.begin(), right.lines.end(),
                    [&](const ProfileLine& one, const ProfileLine& other) {
                      return functions_[one.function] == functions_[other.function] &&
                             one.line == other.line && one.column == other.column;
                    });
}

OtlpDictionary::Number OtlpDictionary::function(std::uint32_t index) {
  if (const Number known = functions_[index]; known != 0) return known;
  const ProfileFunction& function = profile_.functions[index];
  const std::uint64_t hash = hash_numbers(
      {text(function.name), text(function.system_name), text(function.file), as_word(function.start_line)});
  return functions_.add(index, hash, [&](std::uint32_t other) {
    const ProfileFunction& known = profile_.functions[other];
    return text(known.name) == text(function.name) && text(known.system_name) == text(function.system_name) &&
           text(known.file) == text(function.file) && known.start_line == function.start_line;
  });
}

OtlpDictionary::Number OtlpDictionary::mapping(std::uint32_t index) {
  if (const Number known = mappings_[index]; known != 0) return known;
  const ProfileMapping& mapping = profile_.mappings[index];
  MappingAttributes attributes = attributes_of(mapping);
  const std::uint64_t hash =
      hash_numbers({mapping.start.value, mapping.limit.value, mapping.file_offset, text(mapping.path)});
  const Number number = mappings_.add(index, hash, [&](std::uint32_t other) {
    const ProfileMapping& known = profile_.mappings[other];
    return known.start == mapping.start && known.limit == mapping.limit &&
           known.file_offset == mapping.file_offset && text(known.path) == text(mapping.path) &&
           mapping_attributes_[mappings_[other]].numbers == attributes.numbers;
  });
  if (number == mapping_attributes_.size()) mapping_attributes_.push_back(std::move(attributes));
  return number;
}

OtlpDictionary::MappingAttributes OtlpDictionary::attributes_of(const ProfileMapping& mapping) {
  MappingAttributes attributes;
  const auto add_flag = [&](std::string_view key, bool is_set) {
    if (is_set) attributes.numbers.push_back(attribute({key, true, {}}));
  };
  if (const std::string_view id = profile_.text(mapping.build_id); !id.empty())
    attributes.numbers.push_back(attribute({otlp_build_id_key(id), id, {}}));
  add_flag("pprof.mapping.has_functions", mapping.has_functions);
  add_flag("pprof.mapping.has_filenames", mapping.has_filenames);
  add_flag("pprof.mapping.has_line_numbers", mapping.has_lines);
  add_flag("pprof.mapping.has_inline_frames", mapping.has_inlines);
  if (const std::string_view type = otlp_frame_type(profile_.text(mapping.path)); !type.empty())
    attributes.frame_type = attribute({"profile.frame.type", type, {}});
  return attributes;
}

OtlpDictionary::Number OtlpDictionary::link(const Link& link) {
  const std::hash<std::string_view> hash_bytes;
  const std::uint64_t hash = hash_mix(hash_bytes({link.trace_id.data(), link.trace_id.size()}),
                                      hash_bytes({link.span_id.data(), link.span_id.size()}));
  std::uint32_t at = link_index_.find(hash, [&](std::uint32_t known) { return links_[known] == link; });
  if (at == DenseIndex::kNotFound) {
    at = link_index_.append(hash);
    links_.push_back(link);
  }
  return at + 1;
}

}  // namespace ddprof
