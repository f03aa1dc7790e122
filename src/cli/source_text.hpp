#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

struct SourceText {
  std::string path;  // the file that was read
  std::vector<std::string> lines;
};

// The source file that a profile calls `path`. With a folder, it is looked for there first: as the whole path
// below it, then without its first parts ("/build/src/a.cc": DIR/build/src/a.cc, DIR/src/a.cc, DIR/a.cc).
Result<SourceText> read_source(const std::string& path, const std::string& folder);

}  // namespace ddprof
