#include "encode/otlp_resource.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "encode/otlp_samples.hpp"
#include "encode/otlp_tables.hpp"
#include "encode/proto/otlp_fields.hpp"

namespace ddprof {

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

}  // namespace

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

void write_otlp_scope(pbf_writer& message, OtlpNumbers columns, std::string_view default_column) {
  pbf_writer scope(message, otlp::kScope);
  scope.add_string(otlp::kScopeName, "ddprof");
  scope.add_string(otlp::kScopeVersion, DDPROF_VERSION);
  write_key_value(scope, otlp::kScopeAttributes, {"pprof.scope.sample_type_order", std::move(columns), {}});
  if (!default_column.empty() && default_column.size() <= kMaxOtlpResourceText)
    write_key_value(scope, otlp::kScopeAttributes, {"pprof.scope.default_sample_type", default_column, {}});
}

}  // namespace ddprof
