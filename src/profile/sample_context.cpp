#include "profile/sample_context.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "profile/hash.hpp"

namespace ddprof {

std::uint64_t hash_of(const SampleContext& context) {
  std::array<std::uint64_t, 2> trace{};
  std::memcpy(trace.data(), context.trace_id.data(), sizeof trace);
  const std::hash<std::string_view> hash_text;
  std::uint64_t hash = hash_mix(hash_mix(trace[0], trace[1]), context.span_id);
  hash = hash_mix(hash, context.local_root_span_id.value_or(1));
  hash = hash_mix(hash, hash_text(context.endpoint));
  for (const auto& [key, text] : context.others)
    hash = hash_mix(hash_mix(hash, hash_text(key)), hash_text(text));
  return hash;
}

std::string trace_id_text(const SampleContext& context) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto& id = context.trace_id;
  if (std::all_of(id.begin(), id.end(), [](std::uint8_t byte) { return byte == 0; })) return "";
  std::string text;
  for (const std::uint8_t byte : id) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

}  // namespace ddprof
