#pragma once

#include <string>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// The default column as a flame graph in one file: a picture 1,200 wide that needs no script, and the script
// (flamegraph_script.js) that makes it fit the window, zoom, search and explain. It asks for nothing from
// outside. All numbers are in it as integers, in the JSON of the element "data":
//   modules  names, the largest first
//   frames   [name, module, "file:line", CSS class, 1 for processes]
//   nodes    four numbers for each node, callers before callees: depth, frame, value, and 1 when it was
//   always
//            inlined into its caller or 2 when sometimes. Frame -1: callees of the node above that are too
//            small to be nodes; the fourth number is how many.
Result<std::string> encode_flamegraph_svg(const Profile& profile);

}  // namespace ddprof
