#pragma once

#include <string>
#include <string_view>

#include "base/frame.hpp"

namespace ddprof {

// The name of a frame that is not code: "[truncated: no unwind info in libfoo.so]", "[lost: ring buffer
// full]". `module` is the base name of the file that frame.file stands for, or empty; a depth limit's frame
// carries the number of frames kept in `address`. Empty for frames that are code.
std::string marker_name(const Frame& frame, std::string_view module);

// Whether a function name is one of these markers (it is in brackets), as opposed to "[vdso]"-like module
// names.
bool is_marker_name(std::string_view name);

}  // namespace ddprof
