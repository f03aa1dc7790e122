#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// Tags, "key:value", as Datadog takes them: usually each key once, one line, no commas.
class DatadogTags {
 public:
  // Nothing when the value is empty, or the key is there already: who adds first wins. Characters that would
  // end the tag are replaced; what is longer than 200 bytes is cut.
  void add(std::string_view key, std::string_view value);
  // Also where the key is there already.
  void add_another(std::string_view key, std::string_view value);
  // Tags of a user, as in DD_TAGS: separated by commas, or by spaces where there is no comma. Returns those
  // that cannot be tags.
  std::vector<std::string> add_all(std::string_view text);

  [[nodiscard]] const std::vector<std::string>& list() const { return tags_; }
  [[nodiscard]] std::string joined() const;

 private:
  [[nodiscard]] bool has(std::string_view key) const;

  std::vector<std::string> tags_;
};

// One field of a form: a plain value, or a file.
struct FormFile {
  std::string field;
  std::string name;  // of the file; empty: a plain value, which has no content type either
  std::string content_type;
  std::string content;
};

struct MultipartForm {
  std::string content_type;  // with the boundary
  std::string bytes;
};

// The fields as multipart/form-data (RFC 7578), in this order. The boundary comes from `random`, which is
// asked again should it occur in a file. Fields and names are ours: they need no escaping.
MultipartForm make_form(std::span<const FormFile> files, const std::function<std::uint64_t()>& random);

// Whose profiles they are; the same for all of one run.
struct DatadogIdentity {
  std::string service, environment, version;
  std::string runtime_id;       // a UUID
  std::int64_t process_id = 0;  // 0: of many processes
  std::string host;
  std::string architecture;       // as Datadog names it: amd64
  std::string platform;           // what the profiler was built for: x86_64-unknown-linux-gnu
  std::int64_t cores = 0;         // of the machine; 0: unknown
  std::int64_t online_cores = 0;  // of these, the ones in use
  std::optional<bool> includes_kernel;
  bool has_remote_symbols = false;  // addresses are to be named by the backend
  std::string kernel_release, kernel_version;
  std::string tags;          // the user's, as in DD_TAGS
  std::string process_tags;  // the target's own; empty: none
};

// What is said about one batch.
struct DatadogEvent {
  Nanoseconds start{}, end{};  // Unix time
  std::uint64_t sequence = 0;
  std::vector<std::string> dimensions = {};  // labels of its samples that a viewer may group by: container_id
};

DatadogTags tags_of(const DatadogIdentity& identity, const DatadogEvent& event);

// "2024-05-01T12:00:00.000000000Z"
std::string rfc3339(Nanoseconds unix_time);

// A profile, compressed or not.
struct Attachment {
  std::string name;  // "profile.pprof"
  std::string bytes;
  std::string types = {};  // names of its columns: "cpu-time,cpu-samples"
};

// The metadata of a body of version 4, event.json.
std::string event_json(const DatadogIdentity& identity, const DatadogEvent& event,
                       std::span<const Attachment> attachments);

// The body of version 4: event.json and the attachments.
MultipartForm datadog_body(const DatadogIdentity& identity, const DatadogEvent& event,
                           std::vector<Attachment> attachments, const std::function<std::uint64_t()>& random);

// What Datadog's receivers take: three generations, of which the first has no version.
enum class IntakeFormat : std::uint8_t { version_4, version_3, form };

// A body of the two older generations, in which the metadata are fields of the form.
MultipartForm datadog_form(IntakeFormat format, const DatadogIdentity& identity, const DatadogEvent& event,
                           std::vector<Attachment> attachments, const std::function<std::uint64_t()>& random);

}  // namespace ddprof
