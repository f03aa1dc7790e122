#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// Where a profile comes from, as far as its samples do not say it themselves. What is empty is left out.
struct OtlpResource {
  std::string service_name, service_version, service_instance_id, environment, host_name, container_id;
  std::optional<std::int64_t> pid;
  std::string executable_path, executable_name;
  std::vector<std::pair<std::string, std::string>> attributes;  // others; they win over the ones above

  // What processes say of themselves, by ProfileSample::process; it wins over all. An empty text takes away
  // what holds for the others.
  std::vector<std::vector<std::pair<std::string, std::string>>> of_process = {};
};

// OTLP profiles: the bytes of an ExportProfilesServiceRequest (ProfilesData has the same layout), not
// compressed, in the numbering of opentelemetry-proto 1.10 and later. Each process of the profile becomes a
// resource, each value column a profile of its own. Without samples there is no resource: nothing to send.
std::string encode_otlp(const Profile& profile, const OtlpResource& resource);

// Whether these bytes can only be OTLP profiles; they are written, not read.
bool is_otlp(std::string_view bytes);

}  // namespace ddprof
