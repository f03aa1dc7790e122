#include "encode/output_format.hpp"

#include <array>
#include <utility>

#include "encode/folded.hpp"
#include "encode/gzip.hpp"
#include "encode/pprof.hpp"

namespace ddprof {

namespace {

constexpr std::array<std::pair<std::string_view, OutputFormat>, 6> kExtensions{{
    {".pb.gz", OutputFormat::pprof_gzip},
    {".pprof", OutputFormat::pprof_gzip},
    {".pb", OutputFormat::pprof},
    {".folded", OutputFormat::folded},
    {".collapsed", OutputFormat::folded},
    {".txt", OutputFormat::folded},
}};

}  // namespace

Result<OutputFormat> output_format(std::string_view path) {
  std::string known;
  for (const auto& [extension, format] : kExtensions) {
    if (path.ends_with(extension)) return format;
    known += known.empty() ? "" : ", ";
    known += extension;
  }
  return with_hint(
      make_error(ErrorCode::invalid_argument, "output {}: the extension names no known format", path),
      "known extensions: " + known);
}

Result<std::string> encode(const Profile& profile, OutputFormat format) {
  switch (format) {
    case OutputFormat::pprof_gzip:
      return gzip(encode_pprof(profile));
    case OutputFormat::pprof:
      return encode_pprof(profile);
    case OutputFormat::folded:
      return encode_folded(profile);
  }
  return make_error(ErrorCode::invalid_argument, "encode profile: unknown format");
}

}  // namespace ddprof
