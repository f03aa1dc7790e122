#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

enum class OutputFormat { pprof_gzip, pprof, folded, speedscope, firefox, firefox_gzip, otlp, svg };

// By extension: .pb.gz and .pprof are gzipped pprof, .pb is raw pprof; .folded, .collapsed and .txt are
// folded stacks; .speedscope.json, and .firefox.json with or without .gz, are for the viewers of that name;
// .otlp is a request of OTLP profiles, not compressed; .svg is a flame graph.
Result<OutputFormat> output_format(std::string_view path);

// By name, for output that has no path: pprof, pb, folded, speedscope, firefox, otlp, svg.
Result<OutputFormat> output_format_by_name(std::string_view name);

// Whether decode() reads what is written in this format. OTLP profiles and pictures are only written.
[[nodiscard]] constexpr bool is_readable(OutputFormat format) {
  return format != OutputFormat::otlp && format != OutputFormat::svg;
}

// All extensions, and all names, separated by spaces: for help, messages and completion.
[[nodiscard]] std::string_view output_extensions();
[[nodiscard]] std::string_view output_format_names();

Result<std::string> encode(const Profile& profile, OutputFormat format);

}  // namespace ddprof
