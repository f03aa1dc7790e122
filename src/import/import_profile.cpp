#include "import/import_profile.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "encode/compression.hpp"
#include "encode/otlp.hpp"
#include "encode/pprof.hpp"
#include "import/foreign_formats.hpp"

namespace ddprof {

namespace {

using namespace std::string_view_literals;

// Files that people have at hand and that are not profiles that we read.
struct OtherFile {
  std::string_view beginning, what, hint;
};
constexpr auto kOtherFiles = std::to_array<OtherFile>({
    {"\x28\xb5\x2f\xfd"sv, "compressed with zstd", "zstd -d FILE, then read what comes out"},
    {"PERFILE2"sv, "a recording of perf", "perf script -i FILE | stackcollapse-perf.pl > stacks.folded"},
    {"FLR\0"sv, "a recording of Java Flight Recorder", "jfr2pprof or jfrconv of async-profiler convert it"},
    {"\x7f"
     "ELF"sv,
     "a program, not a profile", ""},
    {"PK\x03\x04"sv, "a zip archive", "unpack it first"},
    {"<?xml"sv, "XML, not a profile", ""},
    {"<svg"sv, "a picture, not a profile", "read the profile that it was drawn from"},
    {"<!DOCTYPE"sv, "a web page, not a profile", ""},
});

// Text has no control characters; pprof and gperftools' words always do.
bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
  });
}

// The keys that only one of the two has. They may be anywhere, but both writers put them where all can see.
Result<Profile> decode_json(std::string_view text, const DecodeLimits& limits) {
  if (text.find("\"preprocessedProfileVersion\"") != std::string_view::npos)
    return decode_firefox(text, limits);
  const bool is_speedscope = text.find("speedscope") != std::string_view::npos ||
                             text.find("\"profiles\"") != std::string_view::npos;
  if (is_speedscope) return decode_speedscope(text, limits);
  return make_error(ErrorCode::unsupported,
                    "read profile: JSON, but neither of speedscope nor of the Firefox Profiler");
}

Result<Profile> decode_text(std::string_view text, const DecodeLimits& limits) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos)
    return make_error(ErrorCode::corrupt, "read profile: the file is empty");
  if (text[begin] == '{') return decode_json(text, limits);
  if (is_heap_text(text)) return decode_heap_text(text, limits);
  return decode_folded(text, limits);
}

Result<Profile> decode_plain(std::string_view bytes, const DecodeLimits& limits) {
  if (bytes.size() > limits.inflated_bytes)
    return make_error(ErrorCode::corrupt, "read profile: more than {} bytes", limits.inflated_bytes);
  for (const OtherFile& other : kOtherFiles) {
    if (!bytes.starts_with(other.beginning)) continue;
    return with_hint(make_error(ErrorCode::unsupported, "read profile: {}", other.what),
                     std::string(other.hint));
  }
  if (is_text(bytes)) return decode_text(bytes, limits);
  if (is_gperftools_cpu(bytes)) return decode_gperftools_cpu(bytes, limits);
  Result<Profile> profile = decode_pprof(std::as_bytes(std::span(bytes.data(), bytes.size())), limits);
  // Both begin alike, but what is OTLP is never good pprof.
  if (profile || !is_otlp(bytes)) return profile;
  return with_hint(make_error(ErrorCode::unsupported, "read profile: OTLP profiles, which are only written"),
                   "convert the profile that it was made from");
}

}  // namespace

Result<Profile> import_profile(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  if (is_gzip(bytes)) {
    const std::string inflated = TRY(gunzip(bytes, limits.inflated_bytes));
    return decode_plain(inflated, limits);
  }
  return decode_plain({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limits);
}

}  // namespace ddprof
