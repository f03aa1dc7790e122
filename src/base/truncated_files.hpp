#pragma once

#include <cstdint>

namespace ddprof {

// Files that are mapped can be cut short by others at any moment, for example when a library is written over
// in place, and reading what is gone is a SIGBUS. From this call on it reads as zeros in this process, which
// readers of foreign bytes have to bear anyway.
void survive_truncated_files();

// Pages that were missing so far.
std::uint64_t missing_file_pages();

}  // namespace ddprof
