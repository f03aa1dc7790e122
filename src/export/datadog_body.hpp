#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "export/datadog_tags.hpp"
#include "export/multipart.hpp"

namespace ddprof {

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

}  // namespace ddprof
