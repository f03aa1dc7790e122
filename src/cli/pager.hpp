#pragma once

#include <string>

namespace ddprof {

// Writes to standard output; on a terminal that is too short for it, through $PAGER (less, where there is
// one). The exit status to end with.
int page_output(const std::string& text);

}  // namespace ddprof
