#include "cli/convert.hpp"

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "base/output_file.hpp"
#include "cli/load_profile.hpp"
#include "cli/profiling_request.hpp"
#include "encode/output_format.hpp"

namespace ddprof {

namespace {

Result<OutputFormat> wanted_format(const Options& options) {
  return options.to.empty() ? output_format(options.files[1]) : output_format_by_name(options.to);
}

Result<void> write_converted(const std::string& path, const std::string& content) {
  if (path != "-") return write_output(path, content);
  const bool is_written =
      std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0;
  return is_written ? Result<void>() : errno_error(errno, "write standard output");
}

Result<void> convert_file(const Options& options) {
  // A format that does not exist is said before a large file is read.
  const OutputFormat format = TRY(wanted_format(options));
  const Profile profile = TRY(load_profile(options.files[0]));
  const std::string content = TRY(encode(profile, format));
  return write_converted(options.files[1], content);
}

}  // namespace

int convert(const Options& options) {
  const auto converted = convert_file(options);
  if (converted) return 0;
  say_error(converted.error());
  return 1;
}

}  // namespace ddprof
