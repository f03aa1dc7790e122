#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "process/foreign_memory.hpp"

namespace ddprof {

// What a process publishes about itself for those who observe it: OpenTelemetry's process context (OTEP
// 4719). Attributes that are texts, by their names: "service.name", "service.instance.id", ...
struct ProcessContext {
  std::map<std::string, std::string> resource;
  std::map<std::string, std::string> attributes;
  std::vector<std::string>
      thread_keys;  // threadlocal.attribute_key_map: what indices in threads' records mean

  // Empty where there is none.
  [[nodiscard]] std::string text(const std::string& name) const;
};

// The head of the mapping that a process publishes its context in.
struct ProcessContextHead {
  std::uint32_t payload_bytes = 0;
  std::uint64_t published_at = 0;  // changes with every update; 0: being written
  Address payload{};
};
inline constexpr std::size_t kProcessContextHeadBytes = 32;
inline constexpr std::size_t kMostProcessContextBytes = std::size_t{64} << 10U;

Result<ProcessContextHead> parse_process_context_head(std::span<const std::byte> bytes);
Result<ProcessContext> parse_process_context(std::string_view payload);

// Where a process has it, from the text of /proc/PID/maps.
std::optional<Address> find_process_context(std::string_view maps);

// A context and where it was found.
struct PublishedContext {
  Address at{};
  std::uint64_t published_at = 0;
  ProcessContext context;
};
// None: it publishes nothing, or we may not look.
std::optional<PublishedContext> read_published_context(Pid pid, ForeignMemory& memory);
// Whether the process still publishes this one; much cheaper than to look for it.
bool is_still_published(Pid pid, const PublishedContext& known, ForeignMemory& memory);

}  // namespace ddprof
