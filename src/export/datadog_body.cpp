#include "export/datadog_body.hpp"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <utility>

#include "encode/json_text.hpp"

namespace ddprof {

namespace {

using JsonFields = std::vector<std::pair<std::string_view, std::string_view>>;

// An object of strings; those that are empty are left out.
std::string object_of(const JsonFields& fields) {
  std::string json = "{";
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    if (json.size() > 1) json += ',';
    append_json_string(json, name);
    json += ':';
    append_json_string(json, value);
  }
  return json + "}";
}

std::string info_of(const DatadogIdentity& identity) {
  return fmt::format(
      R"({{"application":{},"platform":{},"profiler":{}}})",
      object_of(
          {{"env", identity.environment}, {"service", identity.service}, {"version", identity.version}}),
      object_of({{"hostname", identity.host},
                 {"kernel_name", "Linux"},
                 {"kernel_release", identity.kernel_release},
                 {"kernel_version", identity.kernel_version}}),
      object_of({{"version", DDPROF_VERSION}, {"activation", "manual"}}));
}

// Nothing for 0.
std::string number_text(std::int64_t number) { return number > 0 ? std::to_string(number) : ""; }

}  // namespace

DatadogTags tags_of(const DatadogIdentity& identity, const DatadogEvent& event) {
  DatadogTags tags;
  tags.add("service", identity.service);
  tags.add("env", identity.environment);
  tags.add("version", identity.version);
  tags.add("host", identity.host);
  tags.add("language", "native");
  tags.add("runtime", "native");
  tags.add("runtime_os", "linux");
  tags.add("runtime_arch", identity.architecture);
  tags.add("runtime-id", identity.runtime_id);
  tags.add("process_id", number_text(identity.process_id));
  tags.add("profiler_version", DDPROF_VERSION);
  tags.add("profile_seq", std::to_string(event.sequence));
  tags.add("number_of_cpu_cores", number_text(identity.cores));
  tags.add("number_hw_concurent_threads", number_text(identity.online_cores));  // so it is spelled there
  if (identity.includes_kernel) tags.add("include_kernel", *identity.includes_kernel ? "true" : "false");
  if (identity.has_remote_symbols) tags.add("remote_symbols", "yes");
  for (const std::string& label : event.dimensions) tags.add_another("ddprof.custom_ctx", label);
  tags.add_all(identity.tags);
  tags.add("runtime_platform", identity.platform);
  return tags;
}

std::string rfc3339(Nanoseconds unix_time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(unix_time);
  const auto time = static_cast<std::time_t>(seconds.count());
  std::tm fields{};
  ::gmtime_r(&time, &fields);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &fields);
  return fmt::format("{}.{:09}Z", text.data(), (unix_time - seconds).count());
}

std::string event_json(const DatadogIdentity& identity, const DatadogEvent& event,
                       std::span<const Attachment> attachments) {
  std::string names;
  for (const Attachment& attachment : attachments) {
    if (!names.empty()) names += ',';
    append_json_string(names, attachment.name);
  }
  std::string tags;
  append_json_string(tags, tags_of(identity, event).joined());
  if (!identity.process_tags.empty()) {
    tags += R"(,"process_tags":)";
    append_json_string(tags, identity.process_tags);
  }
  return fmt::format(R"({{"attachments":[{}],"tags_profiler":{},"start":"{}","end":"{}","family":"native",)"
                     R"("version":"4","internal":{{}},"info":{}}})",
                     names, tags, rfc3339(event.start), rfc3339(event.end), info_of(identity));
}

MultipartForm datadog_body(const DatadogIdentity& identity, const DatadogEvent& event,
                           std::vector<Attachment> attachments,
                           const std::function<std::uint64_t()>& random) {
  std::vector<FormFile> files = {
      {"event", "event.json", "application/json", event_json(identity, event, attachments)}};
  for (Attachment& attachment : attachments)
    files.push_back(
        {attachment.name, attachment.name, "application/octet-stream", std::move(attachment.bytes)});
  return make_form(files, random);
}

}  // namespace ddprof
