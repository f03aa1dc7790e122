#include "encode/otlp.hpp"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/otlp_dictionary.hpp"
#include "encode/otlp_samples.hpp"
#include "profile/profile_view.hpp"
#include "proto/otlp_fields.hpp"
#include "proto/wire_reader.hpp"

namespace ddprof {

// A request holds resources (here: processes), each with scopes (who measured: always us), each with
// profiles; and one dictionary for all. A profile has one value column, and its samples are of one shape: a
// sum, or times, or times with a value for each. So a profile of ours becomes, in each process, one for each
// column, and two where only some of the samples have a time.

namespace {

using protozero::pbf_writer;
namespace otlp = otlp_field;

class ResourceAttributes {
 public:
  // A key has one value: the last.
  void set(std::string_view key, OtlpValue value) {
    const auto known = std::find_if(attributes_.begin(), attributes_.end(),
                                    [&](const OtlpAttribute& attribute) { return attribute.key == key; });
    if (known != attributes_.end()) {
      known->value = std::move(value);
    } else {
      attributes_.push_back({key, std::move(value), {}});
    }
  }
  void set_unless_empty(std::string_view key, std::string_view text) {
    if (!text.empty()) set(key, text);
  }
  void set_or_erase(std::string_view key, std::string_view text) {
    if (!text.empty()) return set(key, text);
    std::erase_if(attributes_, [&](const OtlpAttribute& attribute) { return attribute.key == key; });
  }
  [[nodiscard]] std::span<const OtlpAttribute> all() const { return attributes_; }

 private:
  std::vector<OtlpAttribute> attributes_;
};

void write_key_value(pbf_writer& message, std::uint32_t number, const OtlpAttribute& attribute) {
  pbf_writer pair(message, number);
  write_otlp_text(pair, otlp::kKey, attribute.key);
  write_otlp_value(pair, otlp::kValue, attribute.value);
}

void set_known(ResourceAttributes& attributes, const OtlpResource& resource) {
  attributes.set("telemetry.sdk.name", std::string_view("ddprof"));
  attributes.set("telemetry.sdk.language", std::string_view("cpp"));
  attributes.set("telemetry.sdk.version", std::string_view(DDPROF_VERSION));
  attributes.set_unless_empty("service.name", resource.service_name);
  attributes.set_unless_empty("service.version", resource.service_version);
  attributes.set_unless_empty("service.instance.id", resource.service_instance_id);
  attributes.set_unless_empty("deployment.environment.name", resource.environment);
  attributes.set_unless_empty("host.name", resource.host_name);
  attributes.set_unless_empty("container.id", resource.container_id);
  attributes.set_unless_empty("process.executable.path", resource.executable_path);
  attributes.set_unless_empty("process.executable.name", resource.executable_name);
  if (resource.pid) attributes.set("process.pid", *resource.pid);
  for (const auto& [key, value] : resource.attributes) attributes.set(key, std::string_view(value));
}

// Where samples come from: what is known of all, and what their labels say about their process, which wins,
// and what that process says of itself: `identity` is its position in OtlpResource::of_process.
void write_otlp_resource(pbf_writer& message, const OtlpResource& resource,
                         std::span<const OtlpAttribute> process, std::uint32_t identity) {
  ResourceAttributes attributes;
  set_known(attributes, resource);
  for (const OtlpAttribute& attribute : process) attributes.set(attribute.key, attribute.value);
  if (identity < resource.of_process.size())
    for (const auto& [key, text] : resource.of_process[identity]) attributes.set_or_erase(key, text);
  pbf_writer written(message, otlp::kResource);
  for (const OtlpAttribute& attribute : attributes.all())
    write_key_value(written, otlp::kResourceAttributes, attribute);
}

// Who measured: ddprof. `columns` are those of its profiles; with them and the name of the default column a
// reader can put the profiles back together.
void write_otlp_scope(pbf_writer& message, OtlpNumbers columns, std::string_view default_column) {
  pbf_writer scope(message, otlp::kScope);
  scope.add_string(otlp::kScopeName, "ddprof");
  scope.add_string(otlp::kScopeVersion, DDPROF_VERSION);
  write_key_value(scope, otlp::kScopeAttributes, {"pprof.scope.sample_type_order", std::move(columns), {}});
  if (!default_column.empty() && default_column.size() <= kMaxOtlpResourceText)
    write_key_value(scope, otlp::kScopeAttributes, {"pprof.scope.default_sample_type", default_column, {}});
}

using protozero::pbf_writer;
namespace otlp = otlp_field;
using Samples = std::span<const OtlpSample>;

// Takes the samples from the start that belong together, as far as `is_same(first, sample)` says so.
template <typename Same>
Samples take_run(Samples& samples, Same&& is_same) {
  const auto end = std::find_if_not(samples.begin(), samples.end(), [&](const OtlpSample& sample) {
    return is_same(samples.front(), sample);
  });
  const Samples run = samples.first(static_cast<std::size_t>(end - samples.begin()));
  samples = samples.subspan(run.size());
  return run;
}

bool is_one(const OtlpSample& left, const OtlpSample& right) {
  return left.process == right.process && left.stack == right.stack && left.attributes == right.attributes &&
         left.link == right.link;
}

class OtlpWriter {
 public:
  OtlpWriter(const Profile& profile, const OtlpResource& resource)
      : profile_(profile), resource_(resource), dictionary_(profile), samples_(dictionary_) {}

  std::string write() &&;

 private:
  void number_profile_attributes();
  void write_process(pbf_writer& request, Samples samples);
  void write_profile(pbf_writer& scope, Samples samples, std::size_t column);
  void write_sample(pbf_writer& profile, Samples samples, std::size_t column, bool has_values);
  void write_value_type(pbf_writer& profile, std::uint32_t number, const ValueType& type);

  [[nodiscard]] bool has_column(Samples samples, std::size_t column) const;
  [[nodiscard]] bool needs_values(Samples samples, std::size_t column) const;
  [[nodiscard]] std::size_t expected_bytes() const;

  const Profile& profile_;
  const OtlpResource& resource_;
  OtlpDictionary dictionary_;
  OtlpSamples samples_;
  std::vector<OtlpDictionary::Number> profile_attributes_;
  // The sample at hand: what is in it, and its message.
  std::vector<std::int64_t> values_;
  std::vector<std::uint64_t> times_;
  std::string sample_;
};

void OtlpWriter::number_profile_attributes() {
  OtlpTexts comments;
  for (StringIndex comment : profile_.comments) comments.push_back(profile_.text(comment));
  if (!comments.empty())
    profile_attributes_.push_back(dictionary_.attribute({"pprof.profile.comment", std::move(comments), {}}));
  if (const std::string_view url = profile_.text(profile_.doc_url); !url.empty())
    profile_attributes_.push_back(dictionary_.attribute({"pprof.profile.doc_url", url, {}}));
}

void OtlpWriter::write_value_type(pbf_writer& profile, std::uint32_t number, const ValueType& type) {
  pbf_writer message(profile, number);
  message.add_uint32(otlp::kType, dictionary_.text(type.type));
  message.add_uint32(otlp::kUnit, dictionary_.text(type.unit));
}

bool OtlpWriter::has_column(Samples samples, std::size_t column) const {
  return std::any_of(samples.begin(), samples.end(),
                     [&](const OtlpSample& sample) { return samples_.value(sample, column) != 0; });
}

// A time without a value counts one.
bool OtlpWriter::needs_values(Samples samples, std::size_t column) const {
  if (profile_.text(profile_.value_types[column].unit) != "count") return true;
  return std::any_of(samples.begin(), samples.end(), [&](const OtlpSample& sample) {
    return samples_.value(sample, column) != 0 && samples_.value(sample, column) != 1;
  });
}

void OtlpWriter::write_sample(pbf_writer& profile, Samples samples, std::size_t column, bool has_values) {
  values_.clear();
  times_.clear();
  for (const OtlpSample& sample : samples) {
    const std::int64_t its_value = samples_.value(sample, column);
    if (its_value == 0) continue;
    if (sample.has_time()) times_.push_back(static_cast<std::uint64_t>(sample.time_ns));
    if (sample.has_time() || values_.empty()) {
      values_.push_back(its_value);
    } else {
      values_[0] = saturating_add(values_[0], its_value);
    }
  }
  if (values_.empty()) return;
  const std::span<const std::uint32_t> attributes = samples_.attributes(samples.front());
  sample_.clear();
  pbf_writer message(sample_);
  if (samples.front().stack != 0) message.add_uint32(otlp::kSampleStack, samples.front().stack);
  message.add_packed_uint32(otlp::kSampleAttributes, attributes.begin(), attributes.end());
  if (samples.front().link != 0) message.add_uint32(otlp::kSampleLink, samples.front().link);
  if (has_values) message.add_packed_int64(otlp::kSampleValues, values_.begin(), values_.end());
  message.add_packed_fixed64(otlp::kSampleTimestamps, times_.begin(), times_.end());
  profile.add_message(otlp::kSamples, sample_);
}

void OtlpWriter::write_profile(pbf_writer& scope, Samples samples, std::size_t column) {
  pbf_writer message(scope, otlp::kProfiles);
  write_value_type(message, otlp::kSampleType, profile_.value_types[column]);
  const bool has_values = !samples.front().has_time() || needs_values(samples, column);
  while (!samples.empty()) {
    write_sample(message, take_run(samples, is_one), column, has_values);
  }
  if (profile_.time_ns > 0)
    message.add_fixed64(otlp::kTimeUnixNano, static_cast<std::uint64_t>(profile_.time_ns));
  if (profile_.duration_ns > 0)
    message.add_uint64(otlp::kDurationNano, static_cast<std::uint64_t>(profile_.duration_ns));
  if (profile_.period_type.type != 0) write_value_type(message, otlp::kPeriodType, profile_.period_type);
  if (profile_.period != 0) message.add_int64(otlp::kPeriod, profile_.period);
  message.add_packed_uint32(otlp::kProfileAttributes, profile_attributes_.begin(), profile_attributes_.end());
}

void OtlpWriter::write_process(pbf_writer& request, Samples samples) {
  pbf_writer process(request, otlp::kResourceProfiles);
  write_otlp_resource(process, resource_, samples_.process(samples.front()),
                      samples_.identity(samples.front()));
  Samples timed = samples;
  const Samples untimed =
      take_run(timed, [](const OtlpSample&, const OtlpSample& other) { return !other.has_time(); });
  OtlpNumbers columns;
  pbf_writer scope(process, otlp::kScopeProfiles);
  for (std::size_t column = 0; column < profile_.value_types.size(); ++column) {
    for (const Samples part : {untimed, timed}) {
      if (!has_column(part, column)) continue;
      write_profile(scope, part, column);
      columns.push_back(static_cast<std::int64_t>(column));
    }
  }
  write_otlp_scope(scope, std::move(columns), profile_.text(profile_.default_value_type));
}

// Memory is reserved once: growing in steps would need three times the bytes of the result.
std::size_t OtlpWriter::expected_bytes() const {
  std::size_t bytes = otlp_tables_bytes(dictionary_);
  std::size_t sample_bytes = 0;
  const OtlpSample* previous = nullptr;
  for (const OtlpSample& sample : samples_.all()) {
    if (previous == nullptr || !is_one(*previous, sample))
      sample_bytes += 10 + 2 * samples_.attributes(sample).size();
    sample_bytes += sample.has_time() ? 14 : 6;
    previous = &sample;
  }
  return bytes + sample_bytes * profile_.value_types.size();
}

std::string OtlpWriter::write() && {
  number_profile_attributes();
  std::string bytes;
  bytes.reserve(expected_bytes());
  pbf_writer request(bytes);
  Samples samples = samples_.all();
  while (!samples.empty()) {
    const auto is_same = [](const OtlpSample& left, const OtlpSample& right) {
      return left.process == right.process;
    };
    write_process(request, take_run(samples, is_same));
  }
  write_otlp_tables(request, dictionary_);
  return bytes;
}

bool has_strings(std::string_view dictionary) {
  WireReader reader(dictionary);
  while (reader.next()) {
    if (reader.field() == otlp::kStringTable) return true;
    reader.skip();
  }
  return false;
}

}  // namespace

std::string encode_otlp(const Profile& profile, const OtlpResource& resource) {
  return OtlpWriter(profile, resource).write();
}

// It has no other fields than these two. A pprof that was cut off may have no others left either, but then
// the second is a sample, which holds no strings.
bool is_otlp(std::string_view bytes) {
  WireReader reader(bytes);
  bool has_dictionary = false;
  while (reader.next()) {
    if (reader.field() != otlp::kResourceProfiles && reader.field() != otlp::kDictionary) return false;
    const bool is_dictionary = reader.field() == otlp::kDictionary;
    const std::string_view content = reader.bytes();
    has_dictionary |= is_dictionary && has_strings(content);
  }
  return has_dictionary && !reader.is_failed();
}

}  // namespace ddprof
