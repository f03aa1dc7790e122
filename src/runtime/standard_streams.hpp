#pragma once

#include <string_view>

#include "base/unique_fd.hpp"

namespace ddprof {

// Standard streams that were closed when we were started are filled with nothing, until exec: otherwise the
// next file to be opened becomes standard error, and messages go into a profile. The target finds them closed
// again.
void fill_closed_standard_streams();

// A descriptor that takes and gives nothing: /dev/null, or one like it where there is no /dev. Close-on-exec.
[[nodiscard]] UniqueFd open_nothing();

// Closes all descriptors from `first` to `last`, both included.
void close_descriptors(unsigned first, unsigned last = ~0U);

// All of the text. Nobody there to read it is no reason to end: neither by SIGPIPE nor otherwise.
void print_to(int fd, std::string_view text);
void print_to_standard_error(std::string_view text);

}  // namespace ddprof
