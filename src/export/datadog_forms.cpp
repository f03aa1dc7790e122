#include "export/datadog_forms.hpp"

#include <fmt/format.h>

#include <utility>

namespace ddprof {

namespace {

constexpr const char* kFamily = "native";
constexpr const char* kFileName = "pprof-data";

FormFile plain_field(std::string name, std::string value) {
  return {std::move(name), {}, {}, std::move(value)};
}

// "2024-05-01T12:00:00Z": these generations know no fractions.
std::string whole_seconds(Nanoseconds unix_time) { return rfc3339(unix_time).substr(0, 19) + "Z"; }

std::vector<FormFile> metadata_of(IntakeFormat format, const DatadogEvent& event) {
  const std::string start = whole_seconds(event.start);
  const std::string end = whole_seconds(event.end);
  if (format == IntakeFormat::version_3)
    return {plain_field("version", "3"), plain_field("family", kFamily), plain_field("start", start),
            plain_field("end", end)};
  return {plain_field("format", "pprof"), plain_field("runtime", kFamily),
          plain_field("recording-start", start), plain_field("recording-end", end)};
}

}  // namespace

MultipartForm datadog_form(IntakeFormat format, const DatadogIdentity& identity, const DatadogEvent& event,
                           std::vector<Attachment> attachments,
                           const std::function<std::uint64_t()>& random) {
  std::vector<FormFile> fields = metadata_of(format, event);
  const DatadogTags tags = tags_of(identity, event);
  for (const std::string& tag : tags.list()) fields.push_back(plain_field("tags[]", tag));
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    std::string key = attachments[i].name;
    if (format == IntakeFormat::form) {
      key = std::to_string(i);
      fields.push_back(plain_field(fmt::format("types[{}]", key), attachments[i].types));
    }
    fields.push_back({fmt::format("data[{}]", key), kFileName, "application/octet-stream",
                      std::move(attachments[i].bytes)});
  }
  return make_form(fields, random);
}

}  // namespace ddprof
