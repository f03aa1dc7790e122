#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

enum class OutputFormat { pprof_gzip, pprof, folded };

// By extension: .pb.gz and .pprof are gzipped pprof, .pb is raw pprof; .folded, .collapsed and .txt are
// folded stacks.
Result<OutputFormat> output_format(std::string_view path);

Result<std::string> encode(const Profile& profile, OutputFormat format);

}  // namespace ddprof
