#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddprof {

// What a thread was doing when it was sampled, by its own account: the trace and span that it worked for.
struct SampleContext {
  std::array<std::uint8_t, 16> trace_id{};  // in the order of W3C; all zeroes: none
  std::uint64_t span_id = 0;
  std::optional<std::uint64_t> local_root_span_id;
  std::string endpoint;
  std::vector<std::pair<std::string, std::string>> others;  // keys and texts

  friend bool operator==(const SampleContext&, const SampleContext&) = default;
};

std::uint64_t hash_of(const SampleContext& context);
// 32 lowercase digits; empty when there is no trace.
std::string trace_id_text(const SampleContext& context);

}  // namespace ddprof
