#include "export/datadog_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "encode/escaped_text.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kLongestTag = 200;
constexpr std::string_view kBlanks = " \t\r\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_tag(std::string_view text) { return !text.empty() && is_letter(text.front()) && text.back() != ':'; }

// On one line, and not in the middle of a UTF-8 character.
std::string fitting(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ',' || (c >= 0 && c < ' ') || c == '\x7f'; }, '_');
  if (text.size() > kLongestTag) {
    std::size_t end = kLongestTag;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  while (text.ends_with(':')) text.pop_back();
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

bool DatadogTags::has(std::string_view key) const {
  return std::any_of(tags_.begin(), tags_.end(),
                     [key](std::string_view tag) { return tag.substr(0, tag.find(':')) == key; });
}

void DatadogTags::add(std::string_view key, std::string_view value) {
  if (!has(key)) add_another(key, value);
}

void DatadogTags::add_another(std::string_view key, std::string_view value) {
  if (!value.empty()) tags_.push_back(fitting(fmt::format("{}:{}", key, value)));
}

std::vector<std::string> DatadogTags::add_all(std::string_view text) {
  std::vector<std::string> refused;
  const char separator = text.find(',') == std::string_view::npos ? ' ' : ',';
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view tag = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (tag.empty()) continue;
    if (!is_tag(tag)) {
      refused.emplace_back(tag);
    } else if (!has(tag.substr(0, tag.find(':')))) {
      tags_.push_back(fitting(std::string(tag)));
    }
  }
  return refused;
}

std::string DatadogTags::joined() const { return fmt::format("{}", fmt::join(tags_, ",")); }

namespace {

std::string choose_boundary(std::span<const FormFile> files, const std::function<std::uint64_t()>& random) {
  while (true) {
    const std::uint64_t high = random();
    const std::uint64_t low = random();
    std::string boundary = fmt::format("ddprof-{:016x}{:016x}", high, low);
    const bool occurs = std::any_of(files.begin(), files.end(), [&](const FormFile& file) {
      return file.content.find(boundary) != std::string::npos;
    });
    if (!occurs) return boundary;
  }
}

}  // namespace

MultipartForm make_form(std::span<const FormFile> files, const std::function<std::uint64_t()>& random) {
  const std::string boundary = choose_boundary(files, random);
  MultipartForm form{"multipart/form-data; boundary=" + boundary, ""};
  for (const FormFile& file : files) {
    form.bytes += fmt::format("--{}\r\nContent-Disposition: form-data; name=\"{}\"", boundary, file.field);
    if (!file.name.empty())
      form.bytes += fmt::format("; filename=\"{}\"\r\nContent-Type: {}", file.name, file.content_type);
    form.bytes += "\r\n\r\n";
    form.bytes += file.content;
    form.bytes += "\r\n";
  }
  form.bytes += fmt::format("--{}--\r\n", boundary);
  return form;
}

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
