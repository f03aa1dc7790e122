#include "cli/upload_identity.hpp"

#include <sys/utsname.h>

#include <random>
#include <string_view>

#include "export/datadog_tags.hpp"

namespace ddprof {

namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitectureTag = "amd64";
#elif defined(__aarch64__)
constexpr std::string_view kArchitectureTag = "arm64";
#endif

}  // namespace

// RFC 9562, version 4.
std::string random_uuid() {
  std::random_device random;
  const std::uint32_t words[] = {random(), random(), random(), random()};
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", words[0], words[1] >> 16U,
                     words[1] & 0xfffU, (words[2] >> 16U & 0x3fffU) | 0x8000U, words[2] & 0xffffU, words[3]);
}

DatadogIdentity identity_of(const Options& options, const std::string& name, Pid target) {
  utsname machine{};
  ::uname(&machine);
  return {.service = options.service.empty() ? name : options.service,
          .environment = options.environment,
          .version = options.service_version,
          .runtime_id = options.runtime_id.empty() ? random_uuid() : options.runtime_id,
          .process_id = options.global ? 0 : to_int(target),
          .host = machine.nodename,
          .architecture = std::string(kArchitectureTag),
          .kernel_release = machine.release,
          .kernel_version = machine.version,
          .tags = options.tags};
}

std::vector<std::pair<std::string, std::string>> tag_pairs(const Options& options) {
  DatadogTags tags;
  tags.add_all(options.tags);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& tag : tags.list()) {
    const std::size_t colon = tag.find(':');
    if (colon != std::string::npos) pairs.emplace_back(tag.substr(0, colon), tag.substr(colon + 1));
  }
  return pairs;
}

}  // namespace ddprof
